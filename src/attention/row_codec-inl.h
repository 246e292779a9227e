// Per-target code of row_codec.cpp.
#if defined(RAZORKV_ROW_CODEC_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RAZORKV_ROW_CODEC_INL_H_
#undef RAZORKV_ROW_CODEC_INL_H_
#else
#define RAZORKV_ROW_CODEC_INL_H_
#endif

#include <hwy/highway.h>

#include <cstddef>

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

inline HWY_ATTR void DemoteRow(const float* in, std::byte* out, std::size_t width) {
  auto* half = reinterpret_cast<hwy::float16_t*>(out);
  ForLanes<float>(width, [&](auto d, std::size_t i) HWY_ATTR {
    const hn::Rebind<hwy::float16_t, decltype(d)> d16;
    const auto clamped = hn::Max(hn::Set(d, -65504.0F), hn::Min(hn::LoadU(d, in + i), hn::Set(d, 65504.0F)));
    hn::StoreU(hn::DemoteTo(d16, clamped), d16, half + i);
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
