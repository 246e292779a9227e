// Per-target code: activations to 8 bits.
#if defined(RAZORKV_QUANTISE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RAZORKV_QUANTISE_INL_H_
#undef RAZORKV_QUANTISE_INL_H_
#else
#define RAZORKV_QUANTISE_INL_H_
#endif

#include <hwy/highway.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "matmul/quantised_row.h"

HWY_BEFORE_NAMESPACE();
namespace razorkv {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

inline constexpr std::size_t kBlockColumns = 32;

struct BlockScale {
  float step;
  float inverse;
};

HWY_INLINE BlockScale ScaleOf(const float* x) {
  const hn::CappedTag<float, 16> d;
  auto largest = hn::Zero(d);
  auto poison = hn::Zero(d);  // x - x is 0, or NaN for infinities and NaN
  for (std::size_t i = 0; i < kBlockColumns; i += hn::Lanes(d)) {
    const auto v = hn::LoadU(d, x + i);
    largest = hn::Max(largest, hn::Abs(v));
    poison = hn::Add(poison, hn::Sub(v, v));
  }
  if (!hn::AllTrue(d, hn::Eq(poison, hn::Zero(d)))) return {std::numeric_limits<float>::quiet_NaN(), 0.0F};
  const float most = hn::GetLane(hn::MaxOfLanes(d, largest));
  if (most < 1e-36F) return {0.0F, 0.0F};
  return {most / 127.0F, 127.0F / most};
}

struct HalfSums {
  std::int32_t first;
  std::int32_t second;
};

/// Writes the values of one block, returns the sums of its halves.
HWY_INLINE HalfSums RoundBlock(const float* x, float inverse, std::int8_t* out) {
  const hn::CappedTag<float, 16> d;
  const hn::RebindToSigned<decltype(d)> di;
  const hn::Rebind<std::int8_t, decltype(d)> d8;
  const auto factor = hn::Set(d, inverse);
  const auto round = [&](std::size_t i) HWY_ATTR {
    // NaN (infinity * 0) becomes a value too; the block's scale is NaN then.
    const auto bounded = hn::Min(hn::Mul(hn::LoadU(d, x + i), factor), hn::Set(d, 127.0F));
    const auto value = hn::NearestInt(hn::Max(hn::Set(d, -127.0F), bounded));
    hn::StoreU(hn::DemoteTo(d8, value), d8, out + i);
    return value;
  };
  // Both sums in one: a half's magnitude is at most 16 * 127 < 2^15.
  auto sum = hn::Zero(di);
  for (std::size_t i = 0; i < 16; i += hn::Lanes(d)) {
    sum = hn::Add(sum, hn::Add(round(i), hn::ShiftLeft<16>(round(16 + i))));
  }
  const std::int32_t both = hn::GetLane(hn::SumOfLanes(di, sum));
  const auto first = static_cast<std::int32_t>(static_cast<std::int16_t>(both & 0xFFFF));
  return {first, (both - first) / 65536};
}

inline HWY_ATTR void QuantiseRow(const float* x, std::size_t columns, std::byte* out) {
  const QuantisedRow row(static_cast<std::int64_t>(columns));
  auto* values = reinterpret_cast<std::int8_t*>(out);
  auto* scales = reinterpret_cast<float*>(out + row.scales);
  auto* sums = reinterpret_cast<float*>(out + row.sums);
  auto* counts = reinterpret_cast<std::int32_t*>(out + row.counts);
  auto* halves = reinterpret_cast<std::int32_t*>(out + row.halves);
  for (std::size_t b = 0; b < columns / kBlockColumns; ++b) {
    const float* block = x + b * kBlockColumns;
    const BlockScale scale = ScaleOf(block);
    const HalfSums sum = RoundBlock(block, scale.inverse, values + b * kBlockColumns);
    scales[b] = scale.step;
    sums[b] = scale.step * static_cast<float>(sum.first + sum.second);
    counts[b] = -(sum.first + sum.second);
    halves[2 * b] = -sum.first;
    halves[2 * b + 1] = -sum.second;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace razorkv
HWY_AFTER_NAMESPACE();

#endif  // include guard
