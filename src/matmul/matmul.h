// Products of quantised weight rows and many rows of activations, in 8-bit integers.
//
// The weights are unpacked to unsigned 8-bit integers, a panel of rows at a time that stays in the cache for all rows
// of activations; integer sums of 16 or 32 columns are exact and are scaled and added in float32. So the only loss is
// the rounding of the activations: half a step of each block of 32, whose step is its largest magnitude / 127.
#pragma once

#include <cstddef>
#include <cstdint>

#include "matmul/block_type.h"
#include "matmul/quantised_row.h"

namespace razorkv {

/// Rows of a panel: split work over threads at multiples of this.
inline constexpr std::int64_t kPanelRows = 32;

/// out[t][r] = sum over k of weight[r][k] * activation[t][k]. Nothing is owned.
struct ProductView {
  BlockType type = BlockType::q8_0;
  std::int64_t columns = 0;                ///< a multiple of the type's block
  const std::byte* weights = nullptr;      ///< [rows, columns], rows are contiguous
  const std::byte* activations = nullptr;  ///< [tokens] rows of quantise_rows()
  std::int64_t tokens = 0;
  float* out = nullptr;
  std::int64_t out_stride = 0;  ///< elements from token to token
};

/// Computes output rows [begin, end) for all tokens. Needs 41 KiB of stack. Never throws; threads may share a view.
void multiply(const ProductView& product, std::int64_t begin, std::int64_t end) noexcept;

/// Whether multiply() runs on 8-bit dot-product instructions here. Elsewhere it is right but slow.
bool matmul_is_fast() noexcept;

/// Name of the Highway target that multiply() runs on this CPU, for example "AVX3_DL".
const char* matmul_target() noexcept;

}  // namespace razorkv
