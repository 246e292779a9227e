// Matrix products with the accumulators in registers.
#if defined(RAZORKV_PRODUCT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RAZORKV_PRODUCT_INL_H_
#undef RAZORKV_PRODUCT_INL_H_
#else
#define RAZORKV_PRODUCT_INL_H_
#endif

#include <hwy/highway.h>

#include <cstddef>
#include <cstdint>

#include "attention/load-inl.h"

HWY_BEFORE_NAMESPACE();
namespace razorkv {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class T>
struct Matrix {
  T* data;
  std::size_t stride;  // elements from row to row
};

/// c[i][j] := c[i][j] * rescale[i] (0 where rescale is null) + sum over k of a[i][k] * b[k][j],
/// for kRows rows i and kVectors vectors of columns j.
template <std::size_t kRows, std::size_t kVectors, class T>
HWY_INLINE void MultiplyBlock(Matrix<const float> a, Matrix<const T> b, std::size_t depth, Matrix<float> c,
                              const float* rescale) {
  const hn::ScalableTag<float> d;
  const std::size_t lanes = hn::Lanes(d);
  hn::Vec<decltype(d)> sum[kRows][kVectors];
  for (std::size_t i = 0; i < kRows; ++i) {
    for (std::size_t j = 0; j < kVectors; ++j) {
      sum[i][j] = rescale == nullptr ? hn::Zero(d)
                                     : hn::Mul(hn::LoadU(d, c.data + i * c.stride + j * lanes), hn::Set(d, rescale[i]));
    }
  }
  for (std::size_t k = 0; k < depth; ++k) {
    hn::Vec<decltype(d)> row[kVectors];
    for (std::size_t j = 0; j < kVectors; ++j) row[j] = LoadWide(d, b.data + k * b.stride + j * lanes);
    for (std::size_t i = 0; i < kRows; ++i) {
      const auto factor = hn::Set(d, a.data[i * a.stride + k]);
      for (std::size_t j = 0; j < kVectors; ++j) sum[i][j] = hn::MulAdd(factor, row[j], sum[i][j]);
    }
  }
  for (std::size_t i = 0; i < kRows; ++i) {
    for (std::size_t j = 0; j < kVectors; ++j) hn::StoreU(sum[i][j], d, c.data + i * c.stride + j * lanes);
  }
}

template <std::size_t kRows, class T>
HWY_NOINLINE void MultiplyColumns(Matrix<const float> a, Matrix<const T> b, std::size_t depth, Matrix<float> c,
                                  std::size_t columns, const float* rescale) {
  const std::size_t lanes = hn::Lanes(hn::ScalableTag<float>());
  std::size_t j = 0;
  for (; j + lanes < columns; j += 2 * lanes) {
    MultiplyBlock<kRows, 2, T>(a, {b.data + j, b.stride}, depth, {c.data + j, c.stride}, rescale);
  }
  for (; j < columns; j += lanes) {
    MultiplyBlock<kRows, 1, T>(a, {b.data + j, b.stride}, depth, {c.data + j, c.stride}, rescale);
  }
}

/// MultiplyBlock for any number of rows up to 8. Columns are rounded up to whole vectors: b and c have room for them.
template <class T>
void MultiplyRows(std::size_t rows, Matrix<const float> a, Matrix<const T> b, std::size_t depth, Matrix<float> c,
                  std::size_t columns, const float* rescale) {
  switch (rows) {
    case 1:
      return MultiplyColumns<1>(a, b, depth, c, columns, rescale);
    case 2:
      return MultiplyColumns<2>(a, b, depth, c, columns, rescale);
    case 3:
      return MultiplyColumns<3>(a, b, depth, c, columns, rescale);
    case 4:
      return MultiplyColumns<4>(a, b, depth, c, columns, rescale);
    case 5:
      return MultiplyColumns<5>(a, b, depth, c, columns, rescale);
    case 6:
      return MultiplyColumns<6>(a, b, depth, c, columns, rescale);
    case 7:
      return MultiplyColumns<7>(a, b, depth, c, columns, rescale);
    default:
      return MultiplyColumns<8>(a, b, depth, c, columns, rescale);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace razorkv
HWY_AFTER_NAMESPACE();

#endif  // include guard
