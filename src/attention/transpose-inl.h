// Key rows of a tile, transposed and widened to float32.
#if defined(RAZORKV_TRANSPOSE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RAZORKV_TRANSPOSE_INL_H_
#undef RAZORKV_TRANSPOSE_INL_H_
#else
#define RAZORKV_TRANSPOSE_INL_H_
#endif

#include <hwy/highway.h>

#include <cstddef>
#include <cstdint>

#include "attention/attention.h"
#include "attention/load-inl.h"

HWY_BEFORE_NAMESPACE();
namespace razorkv {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Copies four rows of `width` elements into four columns of `to`.
template <class T>
HWY_INLINE void TransposeRows(const T* const* row, std::size_t width, float* to) {
  constexpr auto kColumns = static_cast<std::size_t>(kPageRows);
  std::size_t c = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::FixedTag<float, 4> d;
  for (; c + 4 <= width; c += 4) {
    const auto a0 = LoadWide(d, row[0] + c);
    const auto a1 = LoadWide(d, row[1] + c);
    const auto a2 = LoadWide(d, row[2] + c);
    const auto a3 = LoadWide(d, row[3] + c);
    const auto low02 = hn::InterleaveLower(d, a0, a2);
    const auto low13 = hn::InterleaveLower(d, a1, a3);
    const auto high02 = hn::InterleaveUpper(d, a0, a2);
    const auto high13 = hn::InterleaveUpper(d, a1, a3);
    hn::StoreU(hn::InterleaveLower(d, low02, low13), d, to + c * kColumns);
    hn::StoreU(hn::InterleaveUpper(d, low02, low13), d, to + (c + 1) * kColumns);
    hn::StoreU(hn::InterleaveLower(d, high02, high13), d, to + (c + 2) * kColumns);
    hn::StoreU(hn::InterleaveUpper(d, high02, high13), d, to + (c + 3) * kColumns);
  }
#endif
  const hn::CappedTag<float, 1> one;
  for (; c < width; ++c) {
    for (std::size_t i = 0; i < 4; ++i) hn::StoreU(LoadWide(one, row[i] + c), one, to + c * kColumns + i);
  }
}

/// to[d][r] := rows[r][d] for r in [begin, end); other columns of `to` hold copies of those or old values.
template <class T>
HWY_NOINLINE void Transpose(const T* rows, std::size_t width, std::int64_t begin, std::int64_t end, float* to) {
  for (std::int64_t r = begin / 4 * 4; r < end; r += 4) {
    const T* row[4];
    for (std::int64_t i = 0; i < 4; ++i) {
      const std::int64_t inside = r + i < begin ? begin : r + i >= end ? end - 1 : r + i;
      row[i] = rows + static_cast<std::size_t>(inside) * width;
    }
    TransposeRows(row, width, to + r);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace razorkv
HWY_AFTER_NAMESPACE();

#endif  // include guard
