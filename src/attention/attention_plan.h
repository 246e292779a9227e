// Splits one layer's attention over threads, and runs the shares.
//
// build() by one thread; then run(thread) by every thread; then, when all are done, merge().
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "attention/attention.h"

namespace razorkv {

/// One KV head of one sequence: what its query rows see, and where their output goes.
struct PlanHead {
  const KvHeadView* kv = nullptr;
  QueryView query;
  std::int64_t out_offset = 0;  ///< elements from the output's start to query row 0, query head 0
  std::int64_t out_row_stride = 0;
  std::int64_t out_head_stride = 0;
  float* lse = nullptr;  ///< log-sum-exp of (row r, head g) goes to lse[r * lse_row_stride + g]; null = not wanted
  std::int64_t lse_row_stride = 0;
};

class AttentionPlan {
 public:
  /// Scratch for up to `max_threads` threads. Throws std::bad_alloc.
  void prepare(int max_threads);
  /// Shares of about equal cost; heads are split by query rows in prefill, by keys in decode. `heads` must stay valid
  /// until merge(). Throws std::bad_alloc; no allocation once shapes repeat.
  void build(std::span<const PlanHead> heads, int threads);
  /// Computes the share of `thread`. Rows that were not split are finished in `out`.
  void run(int thread, float* out) noexcept;
  /// Finishes the rows that were split; heads are shared over `threads` callers.
  void merge(int thread, int threads, float* out) noexcept;
};

}  // namespace razorkv
