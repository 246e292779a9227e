// Rotary position embedding: angles in double precision, the rotation itself in float32.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/config.h"

struct ggml_context;
struct ggml_tensor;

namespace razorkv {

/// Cosines and sines of one kind of layer, right to the last place of their float32 values at any position. (The last
/// place of a float32 angle near 131,071 is 0.008 radians.)
class Rotation {
 public:
  /// `sliding`: base and scale of the sliding-window layers. `factors`: rope.dims / 2 divisors of the frequencies, or
  /// empty. Linear and YaRN scaling (arXiv 2309.00071, section 3) as the configuration says.
  Rotation(const RopeConfig& rope, bool sliding, std::span<const float> factors);

  std::int64_t dims() const noexcept { return 2 * static_cast<std::int64_t>(frequencies_.size()); }
  /// out[row] = dims/2 cosines, then dims/2 sines of positions[row], times the magnitude of YaRN.
  void table(std::span<const std::int32_t> positions, std::span<float> out) const;

 private:
  std::vector<double> frequencies_;  // radians per position
  double magnitude_ = 1.0;
};

/// Adds to the graph: x [head_width, heads, n] float32, contiguous, with the first rope.dims elements of every head
/// rotated by row t of table [rope.dims, n]. `rope` must outlive the graph.
ggml_tensor* rotate(ggml_context* context, const RopeConfig& rope, ggml_tensor* x, ggml_tensor* table);

}  // namespace razorkv
