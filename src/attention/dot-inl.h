// Logits of a few query vectors against the key rows of a tile, which are read as they lie and only once.
#if defined(RAZORKV_DOT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RAZORKV_DOT_INL_H_
#undef RAZORKV_DOT_INL_H_
#else
#define RAZORKV_DOT_INL_H_
#endif

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <cstddef>
#include <cstdint>

#include "attention/attention.h"
#include "attention/load-inl.h"

#if HWY_TARGET != HWY_SCALAR
HWY_BEFORE_NAMESPACE();
namespace razorkv {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// In every 128-bit block [a, b, c, d]: the sum of the block's lanes of each.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V SumPairs(D d, V a, V b) {
  return hn::Add(hn::InterleaveLower(d, a, b), hn::InterleaveUpper(d, a, b));
}
template <class D, class V = hn::Vec<D>>
HWY_INLINE V SumQuads(D d, V ab, V cd) {
  const hn::Repartition<double, D> wide;
  // [a, b, a, b] and [c, d, c, d] hold two partial sums each.
  const auto x = hn::BitCast(wide, ab);
  const auto y = hn::BitCast(wide, cd);
  return hn::Add(hn::BitCast(d, hn::InterleaveLower(wide, x, y)), hn::BitCast(d, hn::InterleaveUpper(wide, x, y)));
}

// Blocks of part[i] are summed to the four lanes 4 i .. 4 i + 3 of the result.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V SumBlocks(D d, const V* part) {
#if HWY_MAX_BYTES == 64
  const V low = hn::Add(hn::ConcatLowerLower(d, part[2], part[0]), hn::ConcatUpperUpper(d, part[2], part[0]));
  const V high = hn::Add(hn::ConcatLowerLower(d, part[3], part[1]), hn::ConcatUpperUpper(d, part[3], part[1]));
  return hn::Add(hn::OddEvenBlocks(hn::SwapAdjacentBlocks(high), low),
                 hn::OddEvenBlocks(high, hn::SwapAdjacentBlocks(low)));
#elif HWY_MAX_BYTES == 32
  return hn::Add(hn::ConcatLowerLower(d, part[1], part[0]), hn::ConcatUpperUpper(d, part[1], part[0]));
#else
  (void)d;
  return part[0];
#endif
}

/// logits[i][r] := q[i] . k[r] for kQueries rows of q and r in [begin, end); other columns hold anything.
/// `width` is a multiple of the vector's lanes. The rows of the tile at `next` are fetched into the cache meanwhile.
template <std::size_t kQueries, class T>
HWY_NOINLINE void DotTile(const float* q, std::size_t q_stride, const T* k, std::size_t width, std::int64_t begin,
                          std::int64_t end, const T* next, float* logits) {
  const hn::ScalableTag<float> d;
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  constexpr std::int64_t kQuads = HWY_MAX_BYTES / 16;
  for (std::int64_t r = begin / lanes * lanes; r < end; r += lanes) {
    V part[kQueries][kQuads];
    for (std::int64_t quad = 0; quad < kQuads; ++quad) {
      V pair[kQueries][2];
      for (std::int64_t half = 0; half < 2; ++half) {
        const std::int64_t at = r + quad * 4 + half * 2;
        const T* row0 = k + static_cast<std::size_t>(at < begin ? begin : at >= end ? end - 1 : at) * width;
        const T* row1 = k + static_cast<std::size_t>(at + 1 < begin ? begin : at + 1 >= end ? end - 1 : at + 1) * width;
        V sum[kQueries][2];
        for (std::size_t i = 0; i < kQueries; ++i) sum[i][0] = sum[i][1] = hn::Zero(d);
        for (std::size_t c = 0; c < width; c += static_cast<std::size_t>(lanes)) {
          const V k0 = LoadWide(d, row0 + c);
          const V k1 = LoadWide(d, row1 + c);
          for (std::size_t i = 0; i < kQueries; ++i) {
            const V x = hn::LoadU(d, q + i * q_stride + c);
            sum[i][0] = hn::MulAdd(x, k0, sum[i][0]);
            sum[i][1] = hn::MulAdd(x, k1, sum[i][1]);
          }
        }
        for (std::size_t i = 0; i < kQueries; ++i) pair[i][half] = SumPairs(d, sum[i][0], sum[i][1]);
        const T* ahead = next + static_cast<std::size_t>(at) * width;
        for (std::size_t byte = 0; byte < 2 * width * sizeof(T); byte += 64) {
          hwy::Prefetch(reinterpret_cast<const char*>(ahead) + byte);
        }
      }
      for (std::size_t i = 0; i < kQueries; ++i) part[i][quad] = SumQuads(d, pair[i][0], pair[i][1]);
    }
    for (std::size_t i = 0; i < kQueries; ++i) {
      hn::StoreU(SumBlocks(d, part[i]), d, logits + i * static_cast<std::size_t>(kPageRows) + r);
    }
  }
}

/// DotTile for up to 8 query vectors.
template <class T>
void DotRows(std::size_t queries, const float* q, std::size_t q_stride, const T* k, std::size_t width,
             std::int64_t begin, std::int64_t end, const T* next, float* logits) {
  switch (queries) {
    case 1:
      return DotTile<1>(q, q_stride, k, width, begin, end, next, logits);
    case 2:
      return DotTile<2>(q, q_stride, k, width, begin, end, next, logits);
    case 3:
      return DotTile<3>(q, q_stride, k, width, begin, end, next, logits);
    case 4:
      return DotTile<4>(q, q_stride, k, width, begin, end, next, logits);
    case 5:
      return DotTile<5>(q, q_stride, k, width, begin, end, next, logits);
    case 6:
      return DotTile<6>(q, q_stride, k, width, begin, end, next, logits);
    case 7:
      return DotTile<7>(q, q_stride, k, width, begin, end, next, logits);
    default:
      return DotTile<8>(q, q_stride, k, width, begin, end, next, logits);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace razorkv
HWY_AFTER_NAMESPACE();
#endif  // HWY_TARGET != HWY_SCALAR

#endif  // include guard
