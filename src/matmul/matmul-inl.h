// Per-target code of matmul.cpp: panels of unpacked weights times rows of activations.
#if defined(RAZORKV_MATMUL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RAZORKV_MATMUL_INL_H_
#undef RAZORKV_MATMUL_INL_H_
#else
#define RAZORKV_MATMUL_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "matmul/matmul.h"
#include "matmul/quantise-inl.h"
#include "matmul/unpack-inl.h"

#if HWY_TARGET == HWY_AVX3_DL
// Highway 1.0.3 detects AVX512-VNNI but lets the compiler use AVX-VNNI.
HWY_PUSH_ATTRIBUTES(HWY_TARGET_STR ",avx512vnni")
#else
HWY_BEFORE_NAMESPACE();
#endif
namespace razorkv {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

inline constexpr std::size_t kRows = kPanelRows;
// Columns of a panel: with its scales it takes 40 KiB, and the activations of 512 tokens stay in a cache of 1 MiB.
inline constexpr std::size_t kPanelColumns = 1024;
// Tokens of a tile: 2 x 6 integer and as many float32 accumulators fit in 32 registers.
inline constexpr std::size_t kTileTokens = HWY_TARGET == HWY_AVX3_DL ? 6 : 1;

using Lanes32 = hn::ScalableTag<std::int32_t>;
using LanesFloat = hn::ScalableTag<float>;
using Integers = hn::Vec<Lanes32>;
using Floats = hn::Vec<LanesFloat>;

struct Panel {
  alignas(64) std::int32_t values[kPanelColumns / 4 * kRows];  // [column / 4][row], four columns side by side in each
  alignas(64) float scales[kPanelColumns / 16 * kRows];        // [group][row]
  alignas(64) float offsets[kPanelColumns / 32 * kRows];       // [group][row]
  int shift = 0;                                               // of the zero point
};

/// Every lane of `sum` += the four products of its unsigned bytes in `weights` and the signed ones of `x`.
HWY_INLINE Integers AddDot4(Integers sum, Integers weights, Integers x) {
#if HWY_TARGET == HWY_AVX3_DL
  return Integers{_mm512_dpbusd_epi32(sum.raw, weights.raw, x.raw)};
#else
  const Lanes32 d;
  const auto byte = hn::Set(d, 255);
  const auto signed_byte = [](Integers v) HWY_ATTR { return hn::ShiftRight<24>(hn::ShiftLeft<24>(v)); };
  sum = hn::Add(sum, hn::Mul(hn::And(weights, byte), signed_byte(x)));
  sum = hn::Add(sum, hn::Mul(hn::And(hn::ShiftRight<8>(weights), byte), signed_byte(hn::ShiftRight<8>(x))));
  sum = hn::Add(sum, hn::Mul(hn::And(hn::ShiftRight<16>(weights), byte), signed_byte(hn::ShiftRight<16>(x))));
  return hn::Add(sum, hn::Mul(hn::And(hn::ShiftRight<24>(weights), byte), hn::ShiftRight<24>(x)));
#endif
}

/// Unpacks `columns` columns of rows [0, rows); the panel's other rows are copies of the last.
template <class F>
HWY_NOINLINE void FillPanel(const std::uint8_t* weights, std::size_t stride, std::size_t rows, std::size_t columns,
                            Panel& panel) {
  constexpr std::size_t kGroups = F::kElements / F::kGroup;
  panel.shift = F::kShift;
  for (std::size_t r = 0; r < kRows; ++r) {
    const std::uint8_t* row = weights + std::min(r, rows - 1) * stride;
    for (std::size_t b = 0; b < columns / F::kElements; ++b) {
      alignas(64) std::uint8_t values[F::kElements];
      float scales[kGroups];
      float offsets[kGroups];
      F::Unpack(row + b * F::kBytes, values, scales, offsets);
      std::int32_t* out = panel.values + b * (F::kElements / 4) * kRows + r;
      for (std::size_t i = 0; i < F::kElements / 4; ++i) std::memcpy(out + i * kRows, values + 4 * i, 4);
      for (std::size_t g = 0; g < kGroups; ++g) {
        panel.scales[(b * kGroups + g) * kRows + r] = scales[g];
        if constexpr (F::kShift == kNoShift) panel.offsets[(b * kGroups + g) * kRows + r] = offsets[g];
      }
    }
  }
}

/// Activations of a tile: rows of quantise_rows() at `first`, column blocks [block, block + blocks).
struct TileInput {
  const std::byte* first;
  QuantisedRow row;
  std::size_t block;
  std::size_t blocks;

  template <class T>
  HWY_INLINE const T* At(std::size_t token, std::size_t part, std::size_t per_block) const {
    return reinterpret_cast<const T*>(first + token * row.bytes + part) + block * per_block;
  }
};

/// How the values of a panel become weights.
enum class Scaling {
  kZeroPoint,    // 32 columns share a scale; weight = scale * (value - 2^shift)
  kZeroPoint16,  // 16 columns share a scale
  kOffset,       // 32 columns share a scale and an offset; weight = scale * value + offset
};

template <class F>
constexpr Scaling ScalingOf() {
  if (F::kShift == kNoShift) return Scaling::kOffset;
  return F::kGroup == 16 ? Scaling::kZeroPoint16 : Scaling::kZeroPoint;
}

/// sum[t][v] := zero point + integer products of two vectors of rows with `kSteps` x 4 columns of each token.
template <std::size_t kTokens, std::size_t kSteps>
HWY_INLINE void DotColumns(const std::int32_t* weights, const std::int8_t* const* values, std::size_t column,
                           Integers (&sum)[kTokens][2]) {
  const Lanes32 d;
  for (std::size_t step = 0; step < kSteps; ++step) {
    const auto w0 = hn::LoadU(d, weights + step * kRows);
    const auto w1 = hn::LoadU(d, weights + step * kRows + hn::Lanes(d));
    for (std::size_t t = 0; t < kTokens; ++t) {
      std::int32_t four;
      std::memcpy(&four, values[t] + column + 4 * step, sizeof four);
      const auto repeated = hn::Set(d, four);
      sum[t][0] = AddDot4(sum[t][0], w0, repeated);
      sum[t][1] = AddDot4(sum[t][1], w1, repeated);
    }
  }
}

/// One product of two vectors of rows and kTokens tokens over `blocks` blocks of 32 columns:
/// out[t * out_stride + r] := (add ? itself : 0) + sum. `panel_row` is the first row.
template <Scaling kScaling, std::size_t kTokens>
HWY_NOINLINE void MultiplyTile(const Panel& panel, std::size_t panel_row, const TileInput& x, bool add, float* out,
                               std::size_t out_stride) {
  const Lanes32 di;
  const LanesFloat df;
  constexpr std::size_t kParts = kScaling == Scaling::kZeroPoint16 ? 2 : 1;
  constexpr std::size_t kSteps = 8 / kParts;
  const std::size_t lanes = hn::Lanes(df);
  const std::int8_t* values[kTokens];
  const float* scales[kTokens];
  const float* sums[kTokens];
  const std::int32_t* counts[kTokens];
  for (std::size_t t = 0; t < kTokens; ++t) {
    values[t] = x.At<std::int8_t>(t, 0, 32);
    scales[t] = x.At<float>(t, x.row.scales, 1);
    sums[t] = x.At<float>(t, x.row.sums, 1);
    counts[t] = x.At<std::int32_t>(t, kParts == 1 ? x.row.counts : x.row.halves, kParts);
  }
  Floats total[kTokens][2];
  for (std::size_t t = 0; t < kTokens; ++t) {
    for (std::size_t v = 0; v < 2; ++v) {
      total[t][v] = add ? hn::LoadU(df, out + t * out_stride + v * lanes) : hn::Zero(df);
    }
  }
  const auto start = [&](std::size_t t, std::size_t group) HWY_ATTR {
    return kScaling == Scaling::kOffset ? hn::Zero(di) : hn::ShiftLeftSame(hn::Set(di, counts[t][group]), panel.shift);
  };
  for (std::size_t b = 0; b < x.blocks; ++b) {
    Integers sum[kTokens][2];
    Floats block[kTokens][2];
    for (std::size_t t = 0; t < kTokens; ++t) sum[t][0] = sum[t][1] = start(t, b * kParts);
    DotColumns<kTokens, kSteps>(panel.values + b * 8 * kRows + panel_row, values, b * 32, sum);
    for (std::size_t v = 0; v < 2; ++v) {
      const auto scale = hn::LoadU(df, panel.scales + b * kParts * kRows + panel_row + v * lanes);
      for (std::size_t t = 0; t < kTokens; ++t) block[t][v] = hn::Mul(hn::ConvertTo(df, sum[t][v]), scale);
    }
    if constexpr (kParts == 2) {
      for (std::size_t t = 0; t < kTokens; ++t) sum[t][0] = sum[t][1] = start(t, b * 2 + 1);
      DotColumns<kTokens, kSteps>(panel.values + (b * 8 + 4) * kRows + panel_row, values, b * 32 + 16, sum);
      for (std::size_t v = 0; v < 2; ++v) {
        const auto scale = hn::LoadU(df, panel.scales + (b * 2 + 1) * kRows + panel_row + v * lanes);
        for (std::size_t t = 0; t < kTokens; ++t) {
          block[t][v] = hn::MulAdd(hn::ConvertTo(df, sum[t][v]), scale, block[t][v]);
        }
      }
    }
    for (std::size_t t = 0; t < kTokens; ++t) {
      const auto scale = hn::Set(df, scales[t][b]);
      for (std::size_t v = 0; v < 2; ++v) total[t][v] = hn::MulAdd(block[t][v], scale, total[t][v]);
    }
    if constexpr (kScaling == Scaling::kOffset) {
      for (std::size_t v = 0; v < 2; ++v) {
        const auto offset = hn::LoadU(df, panel.offsets + b * kRows + panel_row + v * lanes);
        for (std::size_t t = 0; t < kTokens; ++t) {
          total[t][v] = hn::MulAdd(offset, hn::Set(df, sums[t][b]), total[t][v]);
        }
      }
    }
  }
  for (std::size_t t = 0; t < kTokens; ++t) {
    for (std::size_t v = 0; v < 2; ++v) hn::StoreU(total[t][v], df, out + t * out_stride + v * lanes);
  }
}

template <Scaling kScaling, std::size_t kTokens>
void MultiplyPanelTile(const Panel& panel, std::size_t rows, const TileInput& x, bool add, float* out,
                       std::size_t out_stride) {
  const std::size_t step = 2 * hn::Lanes(LanesFloat());
  if (rows == kRows) {
    for (std::size_t r = 0; r < kRows; r += step) {
      MultiplyTile<kScaling, kTokens>(panel, r, x, add, out + r, out_stride);
    }
    return;
  }
  alignas(64) float whole[kTokens * kRows];
  for (std::size_t t = 0; t < kTokens; ++t) {
    for (std::size_t r = 0; r < kRows; ++r) whole[t * kRows + r] = add && r < rows ? out[t * out_stride + r] : 0.0F;
  }
  for (std::size_t r = 0; r < kRows; r += step) {
    MultiplyTile<kScaling, kTokens>(panel, r, x, true, whole + r, kRows);
  }
  for (std::size_t t = 0; t < kTokens; ++t) std::copy_n(whole + t * kRows, rows, out + t * out_stride);
}

template <Scaling kScaling>
HWY_NOINLINE void MultiplyPanel(const Panel& panel, std::size_t rows, const ProductView& product, std::size_t column,
                                std::size_t columns, float* out) {
  const QuantisedRow row(product.columns);
  const auto tokens = static_cast<std::size_t>(product.tokens);
  const auto stride = static_cast<std::size_t>(product.out_stride);
  const bool add = column > 0;
  for (std::size_t t = 0; t < tokens; t += kTileTokens) {
    const TileInput x{product.activations + t * row.bytes, row, column / 32, columns / 32};
    float* to = out + t * stride;
#if HWY_TARGET == HWY_AVX3_DL
    switch (tokens - t) {
      case 1:
        MultiplyPanelTile<kScaling, 1>(panel, rows, x, add, to, stride);
        break;
      case 2:
        MultiplyPanelTile<kScaling, 2>(panel, rows, x, add, to, stride);
        break;
      case 3:
        MultiplyPanelTile<kScaling, 3>(panel, rows, x, add, to, stride);
        break;
      case 4:
        MultiplyPanelTile<kScaling, 4>(panel, rows, x, add, to, stride);
        break;
      case 5:
        MultiplyPanelTile<kScaling, 5>(panel, rows, x, add, to, stride);
        break;
      default:
        MultiplyPanelTile<kScaling, kTileTokens>(panel, rows, x, add, to, stride);
        break;
    }
#else
    MultiplyPanelTile<kScaling, kTileTokens>(panel, rows, x, add, to, stride);
#endif
  }
}

template <class F>
void MultiplyFormat(const ProductView& product, std::int64_t begin, std::int64_t end) {
  const auto columns = static_cast<std::size_t>(product.columns);
  const std::size_t stride = columns / F::kElements * F::kBytes;
  const auto* weights = reinterpret_cast<const std::uint8_t*>(product.weights);
  Panel panel;
  // All panels of one range of columns before the next range, so that its activations stay in the cache.
  for (std::size_t column = 0; column < columns; column += kPanelColumns) {
    const std::size_t count = std::min(kPanelColumns, columns - column);
    for (std::int64_t r = begin; r < end; r += kPanelRows) {
      const auto rows = static_cast<std::size_t>(std::min(kPanelRows, end - r));
      FillPanel<F>(weights + static_cast<std::size_t>(r) * stride + column / F::kElements * F::kBytes, stride, rows,
                   count, panel);
      MultiplyPanel<ScalingOf<F>()>(panel, rows, product, column, count, product.out + r);
    }
  }
}

inline void MultiplyAny(const ProductView& product, std::int64_t begin, std::int64_t end) {
  switch (product.type) {
    case BlockType::q4_0:
      return MultiplyFormat<Q4_0>(product, begin, end);
    case BlockType::q4_1:
      return MultiplyFormat<Q4_1>(product, begin, end);
    case BlockType::q5_0:
      return MultiplyFormat<Q5_0>(product, begin, end);
    case BlockType::q5_1:
      return MultiplyFormat<Q5_1>(product, begin, end);
    case BlockType::q8_0:
      return MultiplyFormat<Q8_0>(product, begin, end);
    case BlockType::q4_k:
      return MultiplyFormat<Q4_K>(product, begin, end);
    case BlockType::q5_k:
      return MultiplyFormat<Q5_K>(product, begin, end);
    case BlockType::q6_k:
      return MultiplyFormat<Q6_K>(product, begin, end);
  }
}

inline const char* MatmulTargetName() { return hwy::TargetName(HWY_TARGET); }
inline bool HasDot4() { return HWY_TARGET == HWY_AVX3_DL; }

}  // namespace HWY_NAMESPACE
}  // namespace razorkv
HWY_AFTER_NAMESPACE();

#endif  // include guard
