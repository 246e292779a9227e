// Rotary embedding: base, rotated width, scaling. What ggml does with the numbers: the angle of pair i at position p
// is p * base^(-2i/dims) / factor_i, times `scale`; with YaRN (ext factor 1) a ramp over the pairs blends it with the
// unscaled angle, and cosine and sine are multiplied by attn factor * (1 + 0.1 ln(1 / scale)).
#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <string>

#include "model/config_keys.h"
#include "model/read_config.h"
#include "razorkv/error.h"

namespace razorkv {
namespace {

constexpr float kMaxBase = 1e30F;
constexpr float kMaxFactor = 1e6F;

RopeScaling read_kind(const ConfigKeys& keys) {
  const auto name = keys.gguf().find_string(keys.full("rope.scaling.type"));
  if (!name || *name == "linear") return RopeScaling::linear;
  if (*name == "none") return RopeScaling::none;
  if (*name == "yarn") return RopeScaling::yarn;
  throw UnsupportedModel(fmt::format("{}: RoPE scaling '{}' is not supported; supported are none, linear, yarn",
                                     keys.gguf().name(), name->substr(0, 64)));
}

float read_factor(const ConfigKeys& keys) {
  auto factor = keys.find_real("rope.scaling.factor", 0.0F, kMaxFactor);
  if (!factor) factor = keys.find_real("rope.scale_linear", 0.0F, kMaxFactor);
  return factor.value_or(0.0F) == 0.0F ? 1.0F : *factor;  // files write 0 for "not scaled"
}

void read_yarn(const ConfigKeys& keys, float factor, RopeConfig& rope) {
  rope.yarn_ext_factor = keys.find_real("rope.scaling.yarn_ext_factor", -1.0F, 1.0F).value_or(1.0F);
  if (rope.yarn_ext_factor < 0.0F) rope.yarn_ext_factor = 1.0F;
  rope.yarn_beta_fast = keys.find_real("rope.scaling.yarn_beta_fast", 0.0F, kMaxFactor).value_or(32.0F);
  rope.yarn_beta_slow = keys.find_real("rope.scaling.yarn_beta_slow", 0.0F, kMaxFactor).value_or(1.0F);
  if (rope.yarn_ext_factor == 0.0F) return;
  // ggml's rotation multiplies by `in_rotation` by itself; below factor 1 the magnitude is 1, so it is divided out. A
  // magnitude that the file gives (yarn_attn_factor, the model's own attention_factor) stands for the whole product.
  const float in_rotation = 1.0F + 0.1F * std::log(factor);
  const float usual = factor <= 1.0F ? 1.0F : in_rotation;
  const float magnitude = keys.find_real("rope.scaling.yarn_attn_factor", 0.0F, kMaxFactor).value_or(usual);
  rope.yarn_attn_factor = magnitude / in_rotation;
}

}  // namespace

RopeConfig read_rope(const GgufFile& gguf, const Architecture& architecture, const Config& config) {
  const ConfigKeys keys(gguf, architecture.name);
  RopeConfig rope;
  rope.kind = architecture.rope;
  rope.dims = keys.find_count("rope.dimension_count", 1, config.head_width).value_or(config.head_width);
  if (rope.dims % 2 != 0) {
    gguf.fail(fmt::format("key '{}' should be even, found {}", keys.full("rope.dimension_count"), rope.dims));
  }
  if (!architecture.partial_rotary && rope.dims != config.head_width) {
    gguf.fail(fmt::format("key '{}' should equal the head width {} in architecture {}, found {}",
                          keys.full("rope.dimension_count"), config.head_width, architecture.name, rope.dims));
  }
  rope.base = keys.find_real("rope.freq_base", 1.0F, kMaxBase).value_or(10000.0F);
  rope.scaling = read_kind(keys);
  const float factor = read_factor(keys);
  if (factor < 1e-3F) {
    gguf.fail(
        fmt::format("key '{}' should be 0.001 to {}, found {}", keys.full("rope.scaling.factor"), kMaxFactor, factor));
  }
  rope.scale = rope.scaling == RopeScaling::none ? 1.0F : 1.0F / factor;
  if (rope.scaling == RopeScaling::linear && factor == 1.0F) rope.scaling = RopeScaling::none;
  rope.original_context =
      keys.find_count("rope.scaling.original_context_length", 1, (std::int64_t{1} << 31) - 1).value_or(config.context);
  if (rope.scaling == RopeScaling::yarn) read_yarn(keys, factor, rope);
  rope.yarn_attn_factor *= keys.find_real("rope.scaling.attn_factor", 0.0F, kMaxFactor).value_or(1.0F);

  rope.base_sliding = keys.find_real("rope.freq_base_swa", 1.0F, kMaxBase)
                          .value_or(architecture.sliding_rope_is_local ? 10000.0F : rope.base);
  rope.scale_sliding = architecture.sliding_rope_is_local ? 1.0F : rope.scale;
  return rope;
}

}  // namespace razorkv
