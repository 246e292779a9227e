// Online softmax of one query vector's logits of one tile.
#if defined(RAZORKV_SOFTMAX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RAZORKV_SOFTMAX_INL_H_
#undef RAZORKV_SOFTMAX_INL_H_
#else
#define RAZORKV_SOFTMAX_INL_H_
#endif

#include <hwy/highway.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "attention/attention.h"

HWY_BEFORE_NAMESPACE();
namespace razorkv {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// exp(x) for x <= 0, and exactly 0 below -87 (and for -inf).
template <class D, class V = hn::Vec<D>>
HWY_INLINE V ExpNegative(D d, V x) {
  const hn::RebindToSigned<D> di;
  const auto limit = hn::Set(d, -87.0F);
  const auto inside = hn::Max(x, limit);
  const auto n = hn::Round(hn::Mul(inside, hn::Set(d, 1.44269504F)));
  auto r = hn::NegMulAdd(n, hn::Set(d, 0.693359375F), inside);  // ln 2 in two parts: the first product is exact
  r = hn::NegMulAdd(n, hn::Set(d, -2.12194440e-4F), r);
  // Taylor to r^7 on |r| <= ln(2) / 2: truncation below 6e-9.
  auto p = hn::Set(d, 1.0F / 5040.0F);
  p = hn::MulAdd(p, r, hn::Set(d, 1.0F / 720.0F));
  p = hn::MulAdd(p, r, hn::Set(d, 1.0F / 120.0F));
  p = hn::MulAdd(p, r, hn::Set(d, 1.0F / 24.0F));
  p = hn::MulAdd(p, r, hn::Set(d, 1.0F / 6.0F));
  p = hn::MulAdd(p, r, hn::Set(d, 0.5F));
  p = hn::MulAdd(p, r, hn::Set(d, 1.0F));
  p = hn::MulAdd(p, r, hn::Set(d, 1.0F));
  const auto exponent = hn::ShiftLeft<23>(hn::ConvertTo(di, n));
  const auto result = hn::BitCast(d, hn::Add(hn::BitCast(di, p), exponent));
  return hn::IfThenElseZero(hn::Ge(x, limit), result);
}

/// cap * tanh(x / cap).
template <class D, class V = hn::Vec<D>>
HWY_INLINE V SoftCap(D d, V x, float cap) {
  // tanh(y) = sign(y) * (1 - e) / (1 + e) with e = exp(-2 |y|)
  const auto e = ExpNegative(d, hn::Mul(hn::Abs(x), hn::Set(d, -2.0F / cap)));
  const auto one = hn::Set(d, 1.0F);
  const auto magnitude = hn::Mul(hn::Set(d, cap), hn::Div(hn::Sub(one, e), hn::Add(one, e)));
  return hn::CopySignToAbs(magnitude, x);
}

/// Turns kPageRows logits into weights exp(logit - m), 0 outside columns [begin, end); brings m and l up to date and
/// returns what the output so far must be multiplied with.
inline float SoftmaxRow(float* logits, int begin, int end, float soft_cap, float& m, float& l) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> di;
  const std::size_t lanes = hn::Lanes(d);
  constexpr auto kColumns = static_cast<std::size_t>(kPageRows);
  constexpr float kEmpty = -std::numeric_limits<float>::infinity();
  const auto empty = hn::Set(d, kEmpty);
  const bool masked = begin > 0 || end < static_cast<int>(kColumns);

  auto most = empty;
  for (std::size_t i = 0; i < kColumns; i += lanes) {
    auto x = hn::LoadU(d, logits + i);
    if (soft_cap > 0.0F) x = SoftCap(d, x, soft_cap);
    if (masked) {
      const auto column = hn::Iota(di, static_cast<std::int32_t>(i));
      const auto seen = hn::And(hn::Gt(column, hn::Set(di, begin - 1)), hn::Lt(column, hn::Set(di, end)));
      x = hn::IfThenElse(hn::RebindMask(d, seen), x, empty);
    }
    hn::StoreU(x, d, logits + i);
    most = hn::Max(most, x);
  }
  const float m_new = std::fmax(m, hn::GetLane(hn::MaxOfLanes(d, most)));
  const auto base = hn::Set(d, m_new == kEmpty ? 0.0F : m_new);  // -inf - -inf would be NaN
  auto sum = hn::Zero(d);
  for (std::size_t i = 0; i < kColumns; i += lanes) {
    const auto weight = ExpNegative(d, hn::Sub(hn::LoadU(d, logits + i), base));
    hn::StoreU(weight, d, logits + i);
    sum = hn::Add(sum, weight);
  }
  const float rescale = m == m_new ? 1.0F : m == kEmpty ? 0.0F : std::exp(m - m_new);
  m = m_new;
  l = l * rescale + hn::GetLane(hn::SumOfLanes(d, sum));
  return rescale;
}

}  // namespace HWY_NAMESPACE
}  // namespace razorkv
HWY_AFTER_NAMESPACE();

#endif  // include guard
