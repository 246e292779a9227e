#include "matmul/matmul.h"

#include "matmul/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "matmul/matmul.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include "matmul/matmul-inl.h"

#if HWY_ONCE
namespace razorkv {

HWY_EXPORT(QuantiseRow);
HWY_EXPORT(MultiplyAny);
HWY_EXPORT(MatmulTargetName);
HWY_EXPORT(HasDot4);

void quantise_rows(const float* x, std::int64_t columns, std::int64_t begin, std::int64_t end,
                   std::byte* out) noexcept {
  const auto count = static_cast<std::size_t>(columns);
  const QuantisedRow row(columns);
  for (auto r = static_cast<std::size_t>(begin); r < static_cast<std::size_t>(end); ++r) {
    HWY_DYNAMIC_DISPATCH(QuantiseRow)(x + r * count, count, out + r * row.bytes);
  }
}

void multiply(const ProductView& product, std::int64_t begin, std::int64_t end) noexcept {
  if (begin < end) HWY_DYNAMIC_DISPATCH(MultiplyAny)(product, begin, end);
}

bool matmul_is_fast() noexcept { return HWY_DYNAMIC_DISPATCH(HasDot4)(); }

const char* matmul_target() noexcept { return HWY_DYNAMIC_DISPATCH(MatmulTargetName)(); }

}  // namespace razorkv
#endif
