// Qwen2.5-Coder-0.5B and Gemma 3 270M beside libllama, both with f16 KV.
#include "engine/accuracy_case.h"

namespace razorkv::test {
namespace {

TEST(AccuracyQwenCoder, EqualsLibllama) { expect_as_close_as_libllama_to_itself(kQwenCoder); }
TEST(AccuracyGemma3, EqualsLibllama) { expect_as_close_as_libllama_to_itself(kGemma3); }

}  // namespace
}  // namespace razorkv::test
