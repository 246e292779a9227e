// Rows of activations in 8 bits: blocks of 32 columns with one float32 scale each.
#pragma once

#include <cstddef>
#include <cstdint>

namespace razorkv {

/// Columns that share a scale.
inline constexpr std::int64_t kScaleColumns = 32;

/// Where the parts of a row of `columns` activations lie; `columns` is a multiple of kScaleColumns. In bytes from its
/// start, which is aligned to 4 bytes:
///   values    [columns]               int8, -127..127
///   scales    [columns / 32]          float32; activation = scale * value
///   sums      [columns / 32]          float32, scale * (sum of the block's values)
///   counts    [columns / 32]          int32, minus the sum of the block's values
///   halves    [columns / 16]          int32, minus the sum of the half block's values
struct QuantisedRow {
  explicit constexpr QuantisedRow(std::int64_t row_columns) noexcept
      : columns(static_cast<std::size_t>(row_columns)),
        scales(columns),
        sums(scales + columns / 8),
        counts(sums + columns / 8),
        halves(counts + columns / 8),
        bytes(halves + columns / 4) {}

  std::size_t columns, scales, sums, counts, halves, bytes;
};

/// out[r] := x[r] rounded, for rows [begin, end). x: [rows, columns] float32; out: [rows] of QuantisedRow(columns).
/// The scale of a block is its largest magnitude / 127; blocks below 1e-36 become zero; the scale of a block with an
/// infinity or NaN is NaN.
void quantise_rows(const float* x, std::int64_t columns, std::int64_t begin, std::int64_t end, std::byte* out) noexcept;

}  // namespace razorkv
