#include "model/rotation.h"

#include <ggml.h>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace razorkv {
namespace {

/// Index of the pair that turns `turns` times within the original context.
double pair_of_turns(const RopeConfig& rope, double base, double turns) {
  const double wavelength = static_cast<double>(rope.original_context) / (turns * 2.0 * std::numbers::pi);
  return static_cast<double>(rope.dims) * std::log(wavelength) / (2.0 * std::log(base));
}

/// Share of the unscaled frequency in each pair: 1 for the fast ones, 0 for the slow ones, a ramp between.
class YarnRamp {
 public:
  YarnRamp(const RopeConfig& rope, double base)
      : low_(std::max(0.0, std::floor(pair_of_turns(rope, base, rope.yarn_beta_fast)))),
        high_(std::min(static_cast<double>(rope.dims - 1), std::ceil(pair_of_turns(rope, base, rope.yarn_beta_slow)))) {
  }
  double operator()(std::int64_t pair) const {
    return 1.0 - std::clamp((static_cast<double>(pair) - low_) / std::max(0.001, high_ - low_), 0.0, 1.0);
  }

 private:
  double low_, high_;
};

void rotate_halves(const float* x, const float* cosines, const float* sines, std::int64_t pairs, float* y) {
  for (std::int64_t i = 0; i < pairs; ++i) {
    y[i] = x[i] * cosines[i] - x[i + pairs] * sines[i];
    y[i + pairs] = x[i] * sines[i] + x[i + pairs] * cosines[i];
  }
}

void rotate_adjacent(const float* x, const float* cosines, const float* sines, std::int64_t pairs, float* y) {
  for (std::int64_t i = 0; i < pairs; ++i) {
    y[2 * i] = x[2 * i] * cosines[i] - x[2 * i + 1] * sines[i];
    y[2 * i + 1] = x[2 * i] * sines[i] + x[2 * i + 1] * cosines[i];
  }
}

void rotate_rows(ggml_tensor* dst, const ggml_tensor* x, const ggml_tensor* table, int ith, int nth, void* userdata) {
  const RopeConfig& rope = *static_cast<const RopeConfig*>(userdata);
  const std::int64_t width = x->ne[0];
  const std::int64_t heads = x->ne[1];
  const std::int64_t rows = heads * x->ne[2];
  const std::int64_t pairs = rope.dims / 2;
  const auto* in = static_cast<const float*>(x->data);
  const auto* angles = static_cast<const float*>(table->data);
  auto* out = static_cast<float*>(dst->data);
  for (std::int64_t row = rows * ith / nth; row < rows * (ith + 1) / nth; ++row) {
    const float* cosines = angles + row / heads * rope.dims;
    const float* from = in + row * width;
    float* to = out + row * width;
    (rope.kind == RopeKind::halves ? rotate_halves : rotate_adjacent)(from, cosines, cosines + pairs, pairs, to);
    std::copy(from + rope.dims, from + width, to + rope.dims);
  }
}

}  // namespace

Rotation::Rotation(const RopeConfig& rope, bool sliding, std::span<const float> factors) {
  const double base = sliding ? rope.base_sliding : rope.base;
  const double scale = sliding ? rope.scale_sliding : rope.scale;
  const double mix = rope.yarn_ext_factor;
  for (std::int64_t pair = 0; pair < rope.dims / 2; ++pair) {
    double frequency = std::pow(base, -2.0 * static_cast<double>(pair) / static_cast<double>(rope.dims));
    if (!factors.empty()) frequency /= static_cast<double>(factors[static_cast<std::size_t>(pair)]);
    const double unscaled = mix == 0.0 ? 0.0 : mix * YarnRamp(rope, base)(pair);
    frequencies_.push_back(frequency * (scale * (1.0 - unscaled) + unscaled));
  }
  magnitude_ = rope.yarn_attn_factor;
  if (mix != 0.0) magnitude_ *= 1.0 + 0.1 * std::log(1.0 / scale);
}

void Rotation::table(std::span<const std::int32_t> positions, std::span<float> out) const {
  float* row = out.data();
  const std::size_t pairs = frequencies_.size();
  for (const std::int32_t position : positions) {
    for (std::size_t pair = 0; pair < pairs; ++pair) {
      const double angle = frequencies_[pair] * position;
      row[pair] = static_cast<float>(magnitude_ * std::cos(angle));
      row[pair + pairs] = static_cast<float>(magnitude_ * std::sin(angle));
    }
    row += 2 * pairs;
  }
}

ggml_tensor* rotate(ggml_context* context, const RopeConfig& rope, ggml_tensor* x, ggml_tensor* table) {
  return ggml_map_custom2(context, x, table, rotate_rows, GGML_N_TASKS_MAX, const_cast<RopeConfig*>(&rope));
}

}  // namespace razorkv
