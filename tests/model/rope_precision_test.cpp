// ggml's rotation against double precision at long positions.
#include <ggml-alloc.h>
#include <ggml-backend.h>
#include <ggml-cpu.h>
#include <ggml.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

namespace razorkv {
namespace {

constexpr int kDims = 64;

struct Free {
  void operator()(ggml_context* context) const { ggml_free(context); }
};

/// Rotates (1, 0) in every pair, "halves" layout, so that the result is cosines, then sines.
std::vector<float> rotate(std::int32_t position, float base) {
  const std::unique_ptr<ggml_context, Free> context(ggml_init({std::size_t{1} << 20, nullptr, false}));
  ggml_tensor* x = ggml_new_tensor_3d(context.get(), GGML_TYPE_F32, kDims, 1, 1);
  ggml_tensor* positions = ggml_new_tensor_1d(context.get(), GGML_TYPE_I32, 1);
  std::fill_n(static_cast<float*>(x->data), kDims / 2, 1.0F);
  std::fill_n(static_cast<float*>(x->data) + kDims / 2, kDims / 2, 0.0F);
  *static_cast<std::int32_t*>(positions->data) = position;
  ggml_tensor* y = ggml_rope_ext(context.get(), x, positions, nullptr, kDims, GGML_ROPE_TYPE_NEOX, 4096, base, 1.0F,
                                 0.0F, 1.0F, 32.0F, 1.0F);
  ggml_cgraph* graph = ggml_new_graph(context.get());
  ggml_build_forward_expand(graph, y);
  ggml_graph_compute_with_ctx(context.get(), graph, 1);
  const auto* values = static_cast<const float*>(y->data);
  return {values, values + kDims};
}

double error_at(std::int32_t position, float base) {
  const std::vector<float> found = rotate(position, base);
  double worst = 0.0;
  for (int i = 0; i < kDims / 2; ++i) {
    const double angle = position * std::pow(static_cast<double>(base), -2.0 * i / kDims);
    const auto pair = static_cast<std::size_t>(i);
    worst = std::max(worst, std::abs(static_cast<double>(found[pair]) - std::cos(angle)));
    worst = std::max(worst, std::abs(static_cast<double>(found[pair + kDims / 2]) - std::sin(angle)));
  }
  return worst;
}

// ggml keeps angles in float32, as libllama and the training code of these models do. Near angle p the last place is
// p * 2^-23, so the error grows with the position and cannot stay below 1e-3 everywhere at 131071: measured 2.2e-3
// there, 5.8e-4 at 16001, 5.5e-5 at 2049, 6e-6 at 255. The bound is 5e-8 per position, below one last place. A position
// held in bf16 or f16, or an angle built in them, would be off by whole turns.
TEST(RopePrecision, FloatAnglesAreGoodToTheirLastPlaces) {
  for (const float base : {10000.0F, 1e6F}) {
    for (const std::int32_t position : {255, 2049, 16001, 131071}) {
      const double error = error_at(position, base);
      RecordProperty("error_" + std::to_string(position) + "_" + std::to_string(static_cast<int>(base)),
                     std::to_string(error));
      EXPECT_LE(error, position * 5e-8) << "position " << position << " base " << base;
    }
  }
}

}  // namespace
}  // namespace razorkv
