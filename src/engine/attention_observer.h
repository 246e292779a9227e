// Sees queries, keys and log-sum-exp of every layer while a batch runs: head scoring, policies that need attention.
#pragma once

#include <cstdint>
#include <span>

#include "cache/head_rows.h"

namespace razorkv {

/// One layer of one sequence's part of a batch. Tensors are [n, heads, head_width] float32, contiguous.
struct ObservedAttention {
  std::int64_t layer = 0;
  std::int64_t sequence = 0;  ///< index of the batch item
  std::int64_t begin = 0;     ///< position of the first of the n query rows
  std::int64_t n = 0;
  const float* q = nullptr;              ///< [n, heads, width]
  const float* lse = nullptr;            ///< [n, heads]: log-sum-exp of the logits that the row saw
  const float* output = nullptr;         ///< [n, heads * width]: attention output before the output matrix
  const float* q_before_rope = nullptr;  ///< [n, heads, width]
  const float* k_before_rope = nullptr;  ///< [n, kv_heads, width]
  const float* residual = nullptr;       ///< [n, embedding]: the stream that enters the layer
  std::span<const HeadRows> heads;       ///< the layer's KV heads; the batch's rows can be read but are not committed
};

class AttentionObserver {
 public:
  virtual ~AttentionObserver() = default;
  /// Called on every thread `ith` of `nth` at once, for one layer after another. Must not throw; an error must be kept
  /// and reported by the observer after the batch.
  virtual void observe(const ObservedAttention& attention, int ith, int nth) noexcept = 0;
};

}  // namespace razorkv
