// SmolLM2-135M beside libllama, both with f16 KV.
#include "engine/accuracy_case.h"

namespace razorkv::test {
namespace {

TEST(AccuracySmolLm2, EqualsLibllama) { expect_as_close_as_libllama_to_itself(kSmolLm2); }

}  // namespace
}  // namespace razorkv::test
