#include "attention/row_codec.h"

#include <cstring>

#include "attention/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attention/row_codec.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include "attention/row_codec-inl.h"

#if HWY_ONCE
namespace razorkv {

HWY_EXPORT(DemoteRow);
HWY_EXPORT(PromoteRow);
HWY_EXPORT(AddHalfRow);
HWY_EXPORT(AddFloatRow);

void store_row(RowType type, const float* in, std::byte* out, std::int64_t width) noexcept {
  if (type == RowType::f32) {
    std::memcpy(out, in, row_bytes(type, width));
  } else {
    HWY_DYNAMIC_DISPATCH(DemoteRow)(in, out, static_cast<std::size_t>(width));
  }
}

void load_row(RowType type, const std::byte* in, float* out, std::int64_t width) noexcept {
  if (type == RowType::f32) {
    std::memcpy(out, in, row_bytes(type, width));
  } else {
    HWY_DYNAMIC_DISPATCH(PromoteRow)(in, out, static_cast<std::size_t>(width));
  }
}

void add_row(RowType type, const std::byte* in, double* sum, std::int64_t width) noexcept {
  if (type == RowType::f32) {
    HWY_DYNAMIC_DISPATCH(AddFloatRow)(in, sum, static_cast<std::size_t>(width));
  } else {
    HWY_DYNAMIC_DISPATCH(AddHalfRow)(in, sum, static_cast<std::size_t>(width));
  }
}

}  // namespace razorkv
#endif
