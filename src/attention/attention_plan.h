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

 private:
  struct Item {
    const PlanHead* head;
    AttentionSlice slice;
    std::int64_t first_state;  // in states_; negative = finished in `out` at once
  };
  struct Split {
    const PlanHead* head;
    std::int64_t first_state;
    std::int64_t pieces;  // each with a state for every (query row, query head)
  };
  class Builder;

  StateView states(std::int64_t first) noexcept;

  std::vector<Item> items_;  // those of thread t: [first_item_[t], first_item_[t + 1])
  std::vector<std::size_t> first_item_;
  std::vector<Split> splits_;
  std::int64_t state_count_ = 0;
  std::int64_t width_ = 0;  // widest head
  std::vector<float> state_o_, state_m_, state_l_;
  std::vector<std::vector<float>> scratch_;  // per thread: attend() scratch, then the states of one block of rows
};

}  // namespace razorkv
