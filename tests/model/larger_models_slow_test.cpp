// Qwen2.5-Coder-0.5B and Gemma 3 270M with float32 weights against libllama.
#include <gtest/gtest.h>

#include <string>

#include "support/book_text.h"
#include "support/real_model.h"
#include "support/test_files.h"

namespace razorkv::test {
namespace {

void expect_equal_with_float_weights(const char* name, double tolerance) {
  const auto model = model_file(name);
  if (!model) GTEST_SKIP() << missing_model(name);
  const auto text = book_text(2000);
  if (!text) GTEST_SKIP() << missing_data("books");
  const Comparison found = compare_float_copy_with_libllama(*model, *text, 128);
  testing::Test::RecordProperty("worst_row_error", std::to_string(found.worst_row_error));
  EXPECT_LE(found.worst_row_error, tolerance);
  EXPECT_LE(found.divergence.mean_kld, 1e-6);
  EXPECT_EQ(found.divergence.same_top_share, 1.0);
}

TEST(QwenCoder, FloatWeightsEqualLibllama) { expect_equal_with_float_weights(kQwenCoder, 1e-4); }

// ggml looks GELU up in a table of f16 values: a last-place difference can move an activation by 2^-11 of it. Measured
// worst row 1.1e-3, mean KLD 2e-7.
TEST(Gemma3, FloatWeightsEqualLibllama) { expect_equal_with_float_weights(kGemma3, 3e-3); }

}  // namespace
}  // namespace razorkv::test
