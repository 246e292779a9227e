// Rows of either type as float32 vectors.
#if defined(RAZORKV_LOAD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RAZORKV_LOAD_INL_H_
#undef RAZORKV_LOAD_INL_H_
#else
#define RAZORKV_LOAD_INL_H_
#endif

#include <hwy/highway.h>

#include <cstddef>

HWY_BEFORE_NAMESPACE();
namespace razorkv {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class D>
HWY_INLINE hn::Vec<D> LoadWide(D d, const float* from) {
  return hn::LoadU(d, from);
}
template <class D>
HWY_INLINE hn::Vec<D> LoadWide(D d, const hwy::float16_t* from) {
  const hn::Rebind<hwy::float16_t, D> half;
  return hn::PromoteTo(d, hn::LoadU(half, from));
}

template <class T>
HWY_INLINE void WidenRow(const T* from, float* to, std::size_t width) {
  const hn::ScalableTag<float> d;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + lanes <= width; i += lanes) hn::StoreU(LoadWide(d, from + i), d, to + i);
  const hn::CappedTag<float, 1> one;
  for (; i < width; ++i) hn::StoreU(LoadWide(one, from + i), one, to + i);
}

}  // namespace HWY_NAMESPACE
}  // namespace razorkv
HWY_AFTER_NAMESPACE();

#endif  // include guard
