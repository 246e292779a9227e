// The rows of one (layer, KV head) of one sequence: anchors, paged rows, and the sums of what was dropped.
//
// Life of a batch of B new rows at positions [n, n + B):
//   reserve(B)            grows the page list (may throw; nothing else changed)
//   write(position, k, v) any row of the batch, then
//   view(...)             what each of the B query rows sees
//   commit(B)             the rows are part of the context now; local heads drop what has left the window
// Without commit() the batch never happened; reserve() may be called again.
//
// Until compress() is called a head keeps all rows whatever its rule says. From then on every query row sees exactly
// what feeding tokens one at a time would have left: its own window, its own compensation row.
// keep() instead leaves a head that keeps everything a chosen subset of its rows.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "attention/attention.h"
#include "cache/head_rule.h"
#include "cache/page_pool.h"

namespace razorkv {

struct RowFormat {
  RowType type = RowType::f16;
  std::int64_t width = 0;
  std::size_t page_bytes() const { return 2 * static_cast<std::size_t>(kPageRows) * row_bytes(type, width); }
};

/// Scratch of one view: owned by the caller, reused from call to call.
struct HeadViewStorage {
  std::vector<const std::byte*> pages;
  std::vector<Visible> visible;
  std::vector<float> comp_k, comp_v;
  std::vector<double> sums;
};

/// Bytes and rows that one head holds. Shared pages count in every head that holds them.
struct HeadUsage {
  std::int64_t rows = 0;            ///< anchors + live paged rows + compensation row
  std::size_t row_bytes = 0;        ///< bytes of those rows: what a perfect allocator would need
  std::size_t allocated_bytes = 0;  ///< pages, anchors and sums as allocated
};

/// Copying is a snapshot: pages and anchors are shared, sums and counts copied. Rows that a snapshot holds never
/// change.
class HeadRows {
 public:
  /// Throws InvalidArgument for a width, window or count outside its range.
  HeadRows(const RowFormat& format, const HeadRule& rule);

  const HeadRule& rule() const noexcept { return rule_; }
  std::int64_t tokens() const noexcept { return tokens_; }    ///< rows committed so far = next position
  std::int64_t dropped() const noexcept { return dropped_; }  ///< rows given up; N of the compensation token if any
  bool compressing() const noexcept { return compressing_; }
  std::int64_t first() const noexcept { return first_; }  ///< position of the oldest live paged row

  /// Makes room for rows [tokens(), tokens() + extra). A tail page shared with a snapshot is copied first.
  /// Throws as PagePool::allocate() or OutOfMemory; then the head is as before. Pages of the pool must fit the format.
  void reserve(PagePool& pool, std::int64_t extra);
  /// Gives back the pages that reserve() added and no commit() used.
  void release_reserved() noexcept;
  /// Stores a row of the reserved batch, rounding to the row type. k, v: [width] float32. Not thread-safe per head.
  void write(std::int64_t position, const float* k, const float* v) noexcept;
  /// View for the query rows at positions [tokens(), tokens() + rows). All rows of the batch must be written.
  KvHeadView view(std::int64_t rows, HeadViewStorage& storage) const;
  void commit(std::int64_t rows) noexcept;

  /// Applies the rule to the committed rows and to all that follow, and gives the pages that fell empty back. A second
  /// call does nothing, nor does a call on a head that keeps everything. Throws OutOfMemory; then nothing changed.
  void compress();

  /// Keeps of a head that keeps everything only the committed rows at `positions` (rising), and all rows that follow;
  /// gives the pages of the others back. Kept rows are copied next to each other, outside the pages, and keep their
  /// positions. Naming every row changes nothing. Throws InvalidArgument for another rule, a second call, and
  /// positions that are none of the head's; OutOfMemory. Then nothing changed.
  void keep(std::span<const std::int64_t> positions);
  /// The positions that keep() left, rising; empty where it dropped nothing.
  std::span<const std::int64_t> kept() const noexcept {
    return kept_ ? std::span<const std::int64_t>(*kept_) : std::span<const std::int64_t>();
  }

  /// Another rule for a head that is not compressed yet. Throws InvalidArgument once it is, and for a rule out of
  /// range.
  void set_rule(const HeadRule& rule);

  HeadUsage usage() const noexcept;
  /// Converts row `position` (live, paged or anchor) to float32, [width] each. For scoring and tests.
  /// Throws InvalidArgument for a row that is not held.
  void read(std::int64_t position, float* k, float* v) const;

 private:
  friend class HeadRowsCodec;  // save and load
  const std::byte* paged_row(std::int64_t position) const noexcept;
  std::int64_t pages_for(std::int64_t tokens) const noexcept;
  std::int64_t anchor_at(std::int64_t position) const noexcept;  // index of its anchor, or -1
  std::int64_t anchor_capacity() const noexcept { return kept_ ? std::ssize(*kept_) : rule_.sinks; }
  std::int64_t anchors_of(std::int64_t tokens) const noexcept { return std::min(anchor_capacity(), tokens); }
  bool compensates() const noexcept { return rule_.compensate && !rule_.everything; }
  void own_anchors();
  void drop_until(std::int64_t position) noexcept;

  RowFormat format_;
  HeadRule rule_;
  bool compressing_ = false;
  std::int64_t tokens_ = 0;
  std::int64_t first_ = 0;   // oldest live paged row
  std::int64_t origin_ = 0;  // position of row 0 of pages_[0]
  std::int64_t dropped_ = 0;
  std::vector<PageRef> pages_;
  // The sinks, or the rows that keep() left: [2, anchor_capacity(), width] (all K, then all V); shared and never
  // changed once `tokens_` passed the sinks.
  std::shared_ptr<std::vector<std::byte>> anchors_;
  std::int64_t n_anchors_ = 0;
  std::shared_ptr<const std::vector<std::int64_t>> kept_;  // positions of the anchors; null without keep()
  // Sums over the dropped rows. Double: 131,072 f16 rows sum without visible error, and 2 * width * 8 bytes are little.
  std::vector<double> sum_k_, sum_v_;
};

}  // namespace razorkv
