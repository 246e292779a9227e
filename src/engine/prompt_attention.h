// What one exact prefill leaves for policies that select rows by attention.
#pragma once

#include <cstdint>
#include <exception>
#include <mutex>
#include <span>
#include <vector>

#include "cache/head_rows.h"
#include "engine/attention_observer.h"
#include "model/config.h"

namespace razorkv {

/// Recorded once, read by every policy that shares the prefill. Layers with the model's own sliding window are left
/// out.
class PromptAttention {
 public:
  static constexpr std::int64_t kMaxWindow = 64;  ///< last query rows that are remembered

  /// `accumulate`: also what each key row received from all rows (h2o), at the price of every product of the prefill
  /// once more.
  PromptAttention(const Config& config, bool accumulate);

  /// The rows of one KV head that a batch appends. Different heads may be added at once. Throws InvalidArgument when
  /// they do not follow the rows recorded so far; std::bad_alloc.
  void add(const ObservedAttention& attention, std::int64_t kv_head);

  /// Rows recorded.
  std::int64_t tokens() const;
  bool accumulates() const { return accumulate_; }
  /// Per key row: softmax weights summed over all query rows and the query heads of the group.
  std::span<const double> received(std::int64_t layer, std::int64_t kv_head) const;
  /// The same over the last `window` query rows only, 1 to kMaxWindow. `rows`: the head, uncompressed, with tokens()
  /// rows.
  std::vector<double> received_from_last(std::int64_t window, std::int64_t layer, std::int64_t kv_head,
                                         const HeadRows& rows) const;

 private:
  struct HeadRecord {
    std::int64_t tokens = 0;
    std::vector<double> received;
    std::vector<float> q;    // [kMaxWindow, group, width]: the row at position p in place p % kMaxWindow
    std::vector<float> lse;  // [kMaxWindow, group]
  };
  const HeadRecord& record(std::int64_t layer, std::int64_t kv_head) const;
  QueryView query_view(std::int64_t layer) const;

  const Config& config_;
  bool accumulate_;
  std::vector<std::vector<HeadRecord>> records_;  // [layer][KV head]; none in sliding layers
};

/// Records one sequence, batch after batch; a failed or repeated batch makes the record worthless.
class PromptAttentionObserver : public AttentionObserver {
 public:
  explicit PromptAttentionObserver(PromptAttention& attention) : attention_(attention) {}
  void observe(const ObservedAttention& attention, int ith, int nth) noexcept override;
  /// The first error of any thread, or null.
  std::exception_ptr error() const { return error_; }

 private:
  PromptAttention& attention_;
  std::mutex error_mutex_;
  std::exception_ptr error_;
};

}  // namespace razorkv
