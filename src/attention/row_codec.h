// Rows of the cache to and from float32.
#pragma once

#include <cstddef>
#include <cstdint>

#include "attention/attention.h"

namespace razorkv {

/// out := in rounded to `type` (nearest even). f16 saturates at +-65504, since one infinite row would spoil a head.
void store_row(RowType type, const float* in, std::byte* out, std::int64_t width) noexcept;
/// out := the stored row.
void load_row(RowType type, const std::byte* in, float* out, std::int64_t width) noexcept;
/// sum += the stored row.
void add_row(RowType type, const std::byte* in, double* sum, std::int64_t width) noexcept;

}  // namespace razorkv
