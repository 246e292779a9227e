// Logits of the decoder graph against libllama's on tiny random f32 models, one per architecture and feature.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <limits>
#include <string>
#include <vector>

#include "model/loaded_model.h"
#include "support/decoder_runner.h"
#include "support/llama_reference.h"
#include "support/plain_attention_hook.h"
#include "support/tiny_gguf.h"

namespace razorkv::test {
namespace {

// Both sides compute in float32 in another order: the errors seen are at most 1e-6.
constexpr double kTolerance = 1e-4;
// ggml looks GELU up in a table of f16 values: where a last place falls the other way an activation moves by 2^-11 of
// it. Measured with gemma models: 1e-6 to 1.1e-4.
constexpr double kGeluTolerance = 5e-4;
constexpr std::int64_t kTokens = 300;

struct Case {
  std::string name;
  TinyOptions options;
};

std::string case_name(const testing::TestParamInfo<Case>& info) { return info.param.name; }
void PrintTo(const Case& one, std::ostream* out) { *out << one.name; }

std::vector<Case> cases() {
  std::vector<Case> all;
  const auto add = [&](std::string name, TinyOptions options) { all.push_back({std::move(name), std::move(options)}); };
  add("llama", {});
  add("llama_tied", {.tied_output = true});
  add("llama_biases", {.qkv_bias = true, .output_bias = true, .feed_forward_bias = true});
  add("llama_frequency_factors", {.rope_factors = true, .rope_base = 500000.0F});
  add("llama_linear", {.rope_scaling = "linear", .rope_factor = 4.0F});
  add("llama_scaling_none", {.rope_scaling = "none", .rope_factor = 4.0F});
  add("llama_factor_without_type", {.rope_factor = 2.0F});
  add("llama_heads_per_layer", {.heads_per_layer = {4, 4}, .kv_heads_per_layer = {2, 2}});
  add("qwen2", {.architecture = "qwen2", .qkv_bias = true, .rope_base = 1e6F});
  add("qwen2_tied", {.architecture = "qwen2", .qkv_bias = true, .tied_output = true});
  add("qwen3", {.architecture = "qwen3", .head_width = 24, .rope_base = 1e6F});
  add("gemma2", {.architecture = "gemma2", .layers = 4, .tied_output = true, .sliding_window = 32});
  add("gemma2_soft_caps", {.architecture = "gemma2",
                           .tied_output = true,
                           .sliding_window = 64,
                           .attention_soft_cap = 1.5F,
                           .final_soft_cap = 2.0F});
  add("gemma3", {.architecture = "gemma3", .layers = 7, .rope_base = 1e6F, .sliding_window = 32});
  add("gemma3_pattern",
      {.architecture = "gemma3", .layers = 4, .rope_base = 1e6F, .sliding_window = 50, .sliding_period = 2});
  add("gemma3_no_window", {.architecture = "gemma3", .rope_base = 1e6F});
  add("gemma3_final_soft_cap", {.architecture = "gemma3", .final_soft_cap = 3.0F});
  add("gemma3_linear", {.architecture = "gemma3",
                        .layers = 3,
                        .rope_base = 1e6F,
                        .rope_scaling = "linear",
                        .rope_factor = 8.0F,
                        .sliding_window = 40,
                        .sliding_period = 3});
  add("gemma3_partial_rotary", {.architecture = "gemma3", .head_width = 24, .rope_dims = 16});
  for (const char* architecture : {"llama", "qwen2"}) {
    const std::string start = std::string(architecture) + "_yarn";
    const TinyOptions yarn = {
        .architecture = architecture, .rope_scaling = "yarn", .rope_factor = 4.0F, .rope_original_context = 64};
    add(start, yarn);
    TinyOptions once = yarn;
    once.rope_attn_factor = 1.0F;
    add(start + "_attn_factor_1", once);
    once.rope_attn_factor = 1.2F;
    add(start + "_attn_factor_1_2", once);
  }
  add("llama_yarn_below_one", {.rope_scaling = "yarn", .rope_factor = 0.5F, .rope_original_context = 64});
  add("gqa_1", {.heads = 4, .kv_heads = 4});
  add("gqa_4", {.heads = 8, .kv_heads = 2});
  add("gqa_7", {.heads = 14, .kv_heads = 2});
  add("mqa", {.heads = 8, .kv_heads = 1});
  for (const std::int64_t width : {64, 80, 96, 128, 256}) {
    add("head_width_" + std::to_string(width), {.heads = 2, .kv_heads = 1, .head_width = width});
  }
  return all;
}

class Logits : public testing::TestWithParam<Case> {};

TEST_P(Logits, EqualLibllamaInAllMicroBatches) {
  const std::string path = TinyGguf(GetParam().options).write_temporary();
  const std::vector<std::int32_t> tokens = random_tokens(kTokens, GetParam().options.vocabulary, 7);
  LlamaReference reference(path);
  const std::vector<float> expected = reference.feed(tokens);
  const auto model = LoadedModel::load(path, {});
  for (const std::int64_t size : {1, 7, 64, 512}) {
    const double error = worst_row_error(run_in_pieces(*model, tokens, size), expected, model->config().vocabulary);
    EXPECT_LE(error, model->config().gelu ? kGeluTolerance : kTolerance) << "micro-batch " << size;
    RecordProperty("error_" + std::to_string(size), std::to_string(error));
  }
  std::remove(path.c_str());
}

INSTANTIATE_TEST_SUITE_P(Tiny, Logits, testing::ValuesIn(cases()), case_name);

TEST(OutputRows, EqualTheSameRowsOfAll) {
  const TinyOptions options = {.architecture = "gemma3", .layers = 3, .sliding_window = 8, .sliding_period = 2};
  const std::string path = TinyGguf(options).write_temporary();
  const auto model = LoadedModel::load(path, {});
  const std::vector<std::int32_t> tokens = random_tokens(40, options.vocabulary, 3);
  const std::vector<float> all = run_in_pieces(*model, tokens, 512);
  PlainAttentionHook hook(model->config());
  const std::vector<std::int32_t> wanted = {39, 0, 17};
  const std::vector<float> some = run_decoder(*model, hook, tokens, 0, wanted);
  std::vector<float> expected;
  for (const std::int32_t row : wanted) {
    expected.insert(expected.end(), all.begin() + row * options.vocabulary,
                    all.begin() + (row + 1) * options.vocabulary);
  }
  EXPECT_LE(worst_row_error(some, expected, options.vocabulary), 1e-6);
  std::remove(path.c_str());
}

TEST(WorstRowError, FailsOnNanOnZeroedRowsAndOnSign) {
  const std::vector<float> expected = {1, 2, 3, 4, -5, 6};
  EXPECT_EQ(worst_row_error(expected, expected, 3), 0.0);
  std::vector<float> found = expected;
  found[4] = 5.0F;
  EXPECT_GT(worst_row_error(found, expected, 3), 1.0);
  found[4] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(std::isinf(worst_row_error(found, expected, 3)));
  EXPECT_TRUE(std::isinf(worst_row_error({1, 2, 3}, expected, 3)));
  EXPECT_GE(worst_row_error({0, 0, 0, 4, -5, 6}, expected, 3), 1.0);
}

}  // namespace
}  // namespace razorkv::test
