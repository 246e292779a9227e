#include "attention/attention.h"

#include <algorithm>

#include "attention/attention_scratch.h"
#include "attention/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attention/attention.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include "attention/attention-inl.h"

#if HWY_ONCE
namespace razorkv {

HWY_EXPORT(AttendBlock);
HWY_EXPORT(TargetName);

void attend(const KvHeadView& kv, const QueryView& query, const AttentionSlice& slice, const StateView& out,
            float* scratch) noexcept {
  const AttentionScratch memory(scratch, kv.width);
  const std::int64_t vectors = (slice.row_end - slice.row_begin) * query.group;
  for (std::int64_t first = 0; first < vectors; first += kBlockVectors) {
    HWY_DYNAMIC_DISPATCH(AttendBlock)
    (kv, query, slice, first, std::min(kBlockVectors, vectors - first), out, memory);
  }
}

std::size_t attend_scratch_floats(std::int64_t /*group*/, std::int64_t width) noexcept {
  return static_cast<std::size_t>(AttentionScratch::floats(width));
}

const char* attention_target() noexcept { return HWY_DYNAMIC_DISPATCH(TargetName)(); }

}  // namespace razorkv
#endif
