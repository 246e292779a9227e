// The batch that is running: its sequences and, layer by layer, the views and the split of the attention work.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <span>
#include <vector>

#include "attention/attention_plan.h"
#include "cache/kv_sequence.h"
#include "engine/attention_observer.h"
#include "model/config.h"

namespace razorkv {

/// One sequence's rows in the batch.
struct BatchPart {
  KvSequence* sequence = nullptr;
  std::int64_t begin = 0;       ///< position of its first row
  std::int64_t n = 0;           ///< rows
  std::int64_t row_offset = 0;  ///< of its first row in the batch
};

/// Called from ggml's threads. Nothing throws; the first error is kept and ends the batch.
class BatchRun {
 public:
  explicit BatchRun(const Config& config) : config_(config) {}

  void start(std::vector<BatchPart> parts, AttentionObserver* observer, int max_threads);
  /// The first error of any thread, or null.
  std::exception_ptr error() const { return error_; }

  /// Stores K and V of a layer ([n, kv_heads, width] float32) and prepares the views; the last thread to arrive splits
  /// the attention of queries q [n, heads, width] into `nth` shares.
  void store(std::int64_t layer, const float* k, const float* v, const float* q, int ith, int nth) noexcept;
  /// Computes this thread's share; the last thread to arrive merges what was split. out: [n, heads * width].
  void attend(float* out, int ith, int nth) noexcept;
  /// Shows the layer to the observer.
  void observe(const ObservedAttention& tensors, int ith, int nth) noexcept;

 private:
  template <typename Work>
  void guarded(const Work& work) noexcept;

  const Config& config_;
  std::vector<BatchPart> parts_;
  AttentionObserver* observer_ = nullptr;

  std::vector<HeadViewStorage> storage_;  // [part][KV head]
  std::vector<KvHeadView> views_;
  std::vector<PlanHead> heads_;
  AttentionPlan plan_;
  std::vector<float> lse_;  // [rows, heads], only when observed
  std::atomic<int> stored_{0};
  std::atomic<int> attended_{0};
  std::atomic<bool> failed_{false};
  std::mutex error_mutex_;
  std::exception_ptr error_;
};

}  // namespace razorkv
