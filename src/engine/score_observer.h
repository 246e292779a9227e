// Feeds induction and echo scores from a running scoring prompt.
#pragma once

#include <cstdint>
#include <exception>
#include <mutex>
#include <vector>

#include "cache/head_rows.h"
#include "cache/page_pool.h"
#include "engine/attention_observer.h"
#include "heads/head_scores.h"
#include "model/config.h"

namespace razorkv {

/// One sequence that keeps everything, micro-batches in order. Layers with the model's own sliding window are left at
/// zero: they are not ranked.
class ScoreObserver : public AttentionObserver {
 public:
  /// `before_rope`: keys before RoPE are kept here (float32) and each row's log-sum-exp is computed over them.
  ScoreObserver(const Config& config, const ScoringPrompt& prompt, bool before_rope);

  void observe(const ObservedAttention& attention, int ith, int nth) noexcept override;

  /// The first error of any thread, or null; scores are then worthless.
  std::exception_ptr error() const { return error_; }
  HeadScores mean() const { return sum_.mean(); }
  /// Bytes of keys kept, at most.
  std::size_t key_bytes() const { return pool_.stats().peak_bytes; }

 private:
  void score(const ObservedAttention& attention, int ith, int nth);
  void keep_keys(const ObservedAttention& attention, std::int64_t kv_head);
  /// Log-sum-exp of the group of KV head `kv_head` over its keys before RoPE.
  void sum_before_rope(const ObservedAttention& attention, std::int64_t kv_head, const KvHeadView& view);

  const Config& config_;
  bool before_rope_;
  HeadScoreSum sum_;
  PagePool pool_;
  std::vector<std::vector<HeadRows>> keys_;  // [layer][KV head], before RoPE; V rows hold K again and go unused
  std::vector<float> lse_;                   // [n, heads]; the threads write different heads
  std::mutex error_mutex_;
  std::exception_ptr error_;
};

}  // namespace razorkv
