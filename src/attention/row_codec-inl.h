// Per-target code of row_codec.cpp.
#if defined(RAZORKV_ROW_CODEC_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RAZORKV_ROW_CODEC_INL_H_
#undef RAZORKV_ROW_CODEC_INL_H_
#else
#define RAZORKV_ROW_CODEC_INL_H_
#endif

#include <hwy/highway.h>

#include <cstddef>
#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace razorkv {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Calls body(d, i) for vectors of a full D over [0, width), then lane by lane with a capped D.
template <class T, class Body>
HWY_ATTR void ForLanes(std::size_t width, const Body& body) {
  const hn::ScalableTag<T> d;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + lanes <= width; i += lanes) body(d, i);
  for (; i < width; ++i) body(hn::CappedTag<T, 1>(), i);
}

#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128 || HWY_TARGET == HWY_SSSE3 || HWY_TARGET == HWY_SSE4
// Highway's emulation flushes negative zero and some subnormals; every target must store the same bits.
template <class D, class V = hn::Vec<D>>
HWY_ATTR hn::Vec<hn::Rebind<std::uint16_t, D>> ToHalf(D d, V x) {
  const hn::RebindToUnsigned<D> du;
  const hn::RebindToSigned<D> di;
  const hn::Rebind<std::uint16_t, D> d16;
  const auto bits = hn::BitCast(du, hn::Abs(x));
  const auto odd = hn::And(hn::ShiftRight<13>(bits), hn::Set(du, 1U));
  // Exponent bias 127 to 15; just under half a unit, and a little more where the result would be odd.
  const auto normal = hn::ShiftRight<13>(hn::Add(hn::Sub(bits, hn::Set(du, (112U << 23U) - 0xFFFU)), odd));
  // Adding 0.5, whose last bit counts 2^-24, rounds to whole units of a subnormal half.
  const auto half = hn::Set(d, 0.5F);
  const auto subnormal = hn::Sub(hn::BitCast(du, hn::Add(hn::Abs(x), half)), hn::BitCast(du, half));
  const auto small = hn::RebindMask(du, hn::Lt(hn::Abs(x), hn::Set(d, 6.103515625e-5F)));
  const auto sign = hn::And(hn::ShiftRight<16>(hn::BitCast(du, x)), hn::Set(du, 0x8000U));
  return hn::DemoteTo(d16, hn::BitCast(di, hn::Or(sign, hn::IfThenElse(small, subnormal, normal))));
}
#else
template <class D, class V = hn::Vec<D>>
HWY_ATTR hn::Vec<hn::Rebind<std::uint16_t, D>> ToHalf(D, V x) {
  const hn::Rebind<hwy::float16_t, D> d16;
  return hn::BitCast(hn::Rebind<std::uint16_t, D>(), hn::DemoteTo(d16, x));
}
#endif

inline HWY_ATTR void DemoteRow(const float* in, std::byte* out, std::size_t width) {
  auto* half = reinterpret_cast<std::uint16_t*>(out);
  ForLanes<float>(width, [&](auto d, std::size_t i) HWY_ATTR {
    const hn::Rebind<std::uint16_t, decltype(d)> d16;
    const auto clamped = hn::Max(hn::Set(d, -65504.0F), hn::Min(hn::Set(d, 65504.0F), hn::LoadU(d, in + i)));
    hn::StoreU(ToHalf(d, clamped), d16, half + i);
  });
}

inline HWY_ATTR void PromoteRow(const std::byte* in, float* out, std::size_t width) {
  const auto* half = reinterpret_cast<const hwy::float16_t*>(in);
  ForLanes<float>(width, [&](auto d, std::size_t i) HWY_ATTR {
    const hn::Rebind<hwy::float16_t, decltype(d)> d16;
    hn::StoreU(hn::PromoteTo(d, hn::LoadU(d16, half + i)), d, out + i);
  });
}

inline HWY_ATTR void AddFloatRow(const std::byte* in, double* sum, std::size_t width) {
  const auto* row = reinterpret_cast<const float*>(in);
  ForLanes<double>(width, [&](auto d, std::size_t i) HWY_ATTR {
    const hn::Rebind<float, decltype(d)> d32;
    hn::StoreU(hn::Add(hn::LoadU(d, sum + i), hn::PromoteTo(d, hn::LoadU(d32, row + i))), d, sum + i);
  });
}

inline HWY_ATTR void AddHalfRow(const std::byte* in, double* sum, std::size_t width) {
  const auto* row = reinterpret_cast<const hwy::float16_t*>(in);
  ForLanes<double>(width, [&](auto d, std::size_t i) HWY_ATTR {
    const hn::Rebind<float, decltype(d)> d32;
    const hn::Rebind<hwy::float16_t, decltype(d)> d16;
    const auto value = hn::PromoteTo(d, hn::PromoteTo(d32, hn::LoadU(d16, row + i)));
    hn::StoreU(hn::Add(hn::LoadU(d, sum + i), value), d, sum + i);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace razorkv
HWY_AFTER_NAMESPACE();

#endif  // include guard
