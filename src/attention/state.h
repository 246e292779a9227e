// Merging attention states; definition in attention.h.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

namespace razorkv {

/// a := a merged with b. `o` has `width` elements. Either may be empty (m = -inf, l = 0).
inline void merge_state(float* o_a, float& m_a, float& l_a, const float* o_b, float m_b, float l_b,
                        std::int64_t width) noexcept {
  const float m = m_a > m_b ? m_a : m_b;
  if (m == -std::numeric_limits<float>::infinity()) return;  // both empty: exp(-inf - -inf) would be NaN
  const float scale_a = std::exp(m_a - m);
  const float scale_b = std::exp(m_b - m);
  for (std::int64_t i = 0; i < width; ++i) o_a[i] = o_a[i] * scale_a + o_b[i] * scale_b;
  l_a = l_a * scale_a + l_b * scale_b;
  m_a = m;
}

/// out := o / l, or zeros for the empty state.
inline void finish_state(float* out, const float* o, float l, std::int64_t width) noexcept {
  const float inverse = l > 0.0F ? 1.0F / l : 0.0F;
  for (std::int64_t i = 0; i < width; ++i) out[i] = o[i] * inverse;
}

}  // namespace razorkv
