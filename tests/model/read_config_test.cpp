// Metadata to Config: derived values that the comparison of logits cannot tell apart from luck.
#include "model/read_config.h"

#include <gguf.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <functional>

#include "base/file_mapping.h"
#include "support/tiny_gguf.h"

namespace razorkv::test {
namespace {

Config config_of(const TinyOptions& options, const std::function<void(gguf_context*)>& edit = nullptr) {
  TinyGguf tiny(options);
  if (edit) tiny.edit_metadata(edit);
  const std::string path = tiny.write_temporary();
  const FileMapping mapping(path);
  std::remove(path.c_str());
  return read_config(GgufFile::parse(mapping.bytes(), path));
}

TEST(ReadConfig, SizesAndBytesPerToken) {
  const Config config = config_of({.layers = 3, .heads = 6, .kv_heads = 2, .head_width = 24});
  EXPECT_EQ(config.architecture, "llama");
  EXPECT_EQ(config.name, "tiny");
  EXPECT_EQ(config.layer_count(), 3);
  EXPECT_EQ(config.head_width, 24);
  EXPECT_EQ(config.rope.dims, 24);
  EXPECT_EQ(config.rope.kind, RopeKind::adjacent);
  EXPECT_EQ(config.kv_bytes_per_token(2), 2 * 3 * 2 * 24 * 2);
  EXPECT_FLOAT_EQ(config.attention_scale, 1.0F / std::sqrt(24.0F));
  EXPECT_EQ(config.sliding_window, 0);
}

TEST(ReadConfig, HeadCountsPerLayer) {
  const Config config = config_of({.heads_per_layer = {4, 6}, .kv_heads_per_layer = {2, 3}});
  EXPECT_EQ(config.layers[0].heads, 4);
  EXPECT_EQ(config.layers[1].heads, 6);
  EXPECT_EQ(config.layers[1].kv_heads, 3);
  EXPECT_EQ(config.kv_bytes_per_token(4), 2 * (2 + 3) * 16 * 4);
}

TEST(ReadConfig, KvHeadsDefaultToHeads) {
  const Config config =
      config_of({}, [](gguf_context* gguf) { gguf_remove_key(gguf, "llama.attention.head_count_kv"); });
  EXPECT_EQ(config.layers[0].kv_heads, 4);
}

TEST(ReadConfig, EverySixthGemma3LayerSeesEverything) {
  const Config config = config_of({.architecture = "gemma3", .layers = 13, .rope_base = 1e6F, .sliding_window = 512});
  for (std::size_t i = 0; i < 13; ++i) EXPECT_EQ(config.layers[i].sliding, i != 5 && i != 11) << i;
  EXPECT_EQ(config.sliding_window, 512);
  EXPECT_EQ(config.rope.base, 1e6F);
  EXPECT_EQ(config.rope.base_sliding, 10000.0F);
  EXPECT_FLOAT_EQ(config.embedding_scale, 8.0F);
  EXPECT_TRUE(config.gelu);
}

TEST(ReadConfig, SlidingLayersAsAnArray) {
  const Config config = config_of({.architecture = "gemma3", .layers = 3, .sliding_window = 8}, [](gguf_context* gguf) {
    const bool pattern[] = {false, true, true};
    gguf_set_arr_data(gguf, "gemma3.attention.sliding_window_pattern", GGUF_TYPE_BOOL, pattern, 3);
  });
  EXPECT_FALSE(config.layers[0].sliding);
  EXPECT_TRUE(config.layers[1].sliding);
  EXPECT_TRUE(config.layers[2].sliding);
}

TEST(ReadConfig, Gemma2HasItsSoftCapsWhereTheFileSaysNothing) {
  const Config config = config_of({.architecture = "gemma2", .tied_output = true});
  EXPECT_EQ(config.attention_soft_cap, 50.0F);
  EXPECT_EQ(config.final_soft_cap, 30.0F);
  EXPECT_EQ(config.sliding_window, 4096);
  EXPECT_TRUE(config.layers[0].sliding);
  EXPECT_FALSE(config.layers[1].sliding);
}

/// What cosines and sines are multiplied by in all: the configured factor times what ggml's rotation adds by itself.
float yarn_magnitude(const RopeConfig& rope) {
  return rope.yarn_attn_factor * (1.0F + 0.1F * std::log(1.0F / rope.scale));
}

TEST(ReadConfig, YarnMagnitudeIsAppliedOnce) {
  const TinyOptions yarn = {.rope_scaling = "yarn", .rope_factor = 4.0F, .rope_original_context = 64};
  const float usual = 0.1F * std::log(4.0F) + 1.0F;
  const RopeConfig plain = config_of(yarn).rope;
  EXPECT_EQ(plain.scaling, RopeScaling::yarn);
  EXPECT_EQ(plain.yarn_ext_factor, 1.0F);
  EXPECT_EQ(plain.scale, 0.25F);
  EXPECT_EQ(plain.original_context, 64);
  EXPECT_FLOAT_EQ(yarn_magnitude(plain), usual);
  for (const float given : {1.0F, 1.2F}) {
    TinyOptions own = yarn;
    own.rope_yarn_attn_factor = given;  // the model's attention_factor: stands for the whole
    EXPECT_FLOAT_EQ(yarn_magnitude(config_of(own).rope), given);
    TinyOptions on_top = yarn;
    on_top.rope_attn_factor = given;  // multiplies the usual magnitude, as in libllama
    EXPECT_FLOAT_EQ(yarn_magnitude(config_of(on_top).rope), usual * given);
  }
}

TEST(ReadConfig, LinearAndNoScaling) {
  EXPECT_EQ(config_of({.rope_scaling = "linear", .rope_factor = 8.0F}).rope.scale, 0.125F);
  EXPECT_EQ(config_of({.rope_scaling = "linear", .rope_factor = 0.0F}).rope.scale, 1.0F);
  EXPECT_EQ(config_of({.rope_scaling = "none", .rope_factor = 8.0F}).rope.scale, 1.0F);
  EXPECT_EQ(config_of({.rope_scaling = "linear", .rope_factor = 8.0F}).rope.yarn_ext_factor, 0.0F);
}

}  // namespace
}  // namespace razorkv::test
