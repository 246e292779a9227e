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
  if (hn::GetLane(hn::SumOfLanes(d, poison)) != 0.0F) return {std::numeric_limits<float>::quiet_NaN(), 0.0F};
  const float most = hn::GetLane(hn::MaxOfLanes(d, largest));
  if (most < 1e-36F) return {0.0F, 0.0F};
  return {most / 127.0F, 127.0F / most};
}

// Writes one half block, returns the sum of its values.
HWY_INLINE std::int32_t RoundHalfBlock(const float* x, float inverse, std::int8_t* out) {
  const hn::CappedTag<float, 16> d;
  const hn::RebindToSigned<decltype(d)> di;
  const hn::Rebind<std::int8_t, decltype(d)> d8;
  auto sum = hn::Zero(di);
  for (std::size_t i = 0; i < kBlockColumns / 2; i += hn::Lanes(d)) {
    const auto scaled = hn::Mul(hn::LoadU(d, x + i), hn::Set(d, inverse));
    // NaN (infinity * 0) becomes a value too; the block's scale is NaN then.
    const auto value = hn::NearestInt(hn::Max(hn::Set(d, -127.0F), hn::Min(scaled, hn::Set(d, 127.0F))));
    hn::StoreU(hn::DemoteTo(d8, value), d8, out + i);
    sum = hn::Add(sum, value);
  }
  return hn::GetLane(hn::SumOfLanes(di, sum));
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
    std::int8_t* rounded = values + b * kBlockColumns;
    const std::int32_t first = RoundHalfBlock(block, scale.inverse, rounded);
    const std::int32_t second = RoundHalfBlock(block + 16, scale.inverse, rounded + 16);
    scales[b] = scale.step;
    sums[b] = scale.step * static_cast<float>(first + second);
    counts[b] = -(first + second);
    halves[2 * b] = -first;
    halves[2 * b + 1] = -second;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace razorkv
HWY_AFTER_NAMESPACE();

#endif  // include guard
