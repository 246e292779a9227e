#include "cache/head_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "attention/row_codec.h"
#include "razorkv/error.h"

namespace razorkv {
namespace {

std::size_t index(std::int64_t value) { return static_cast<std::size_t>(value); }

}  // namespace

HeadRows::HeadRows(const RowFormat& format, const HeadRule& rule) : format_(format) {
  if (format.width < 1) throw InvalidArgument(fmt::format("a head is at least 1 wide, not {}", format.width));
  set_rule(rule);
}

void HeadRows::set_rule(const HeadRule& rule) {
  if (compressing_) throw InvalidArgument("a compressed KV head cannot follow another rule");
  if (!rule.everything) {
    if (rule.sinks < 0) throw InvalidArgument(fmt::format("a head keeps 0 or more sinks, not {}", rule.sinks));
    if (rule.window_floor < 1) {
      throw InvalidArgument(fmt::format("a head's window is at least 1 row, not {}", rule.window_floor));
    }
    if (rule.window_divisor < 0) {
      throw InvalidArgument(fmt::format("a window's divisor is 0 (none) or positive, not {}", rule.window_divisor));
    }
  }
  rule_ = rule;
}

const std::byte* HeadRows::paged_row(std::int64_t position) const noexcept {
  const std::int64_t row = position - origin_;
  return pages_[index(row / kPageRows)].data() + index(row % kPageRows) * row_bytes(format_.type, format_.width);
}

// Pages that hold the paged rows before position `tokens`.
std::int64_t HeadRows::pages_for(std::int64_t tokens) const noexcept {
  return tokens <= first_ ? 0 : (tokens - origin_ + kPageRows - 1) / kPageRows;
}

// Anchors that still grow are copied each time: asking whether another thread shares them would not be safe.
void HeadRows::own_anchors() { anchors_ = std::make_shared<std::vector<std::byte>>(*anchors_); }

void HeadRows::reserve(PagePool& pool, std::int64_t extra) try {
  const std::int64_t needed = pages_for(tokens_ + extra);
  const std::int64_t full = std::min(needed, tokens_ <= first_ ? 0 : (tokens_ - origin_) / kPageRows);
  const std::int64_t tail_rows = tokens_ <= first_ ? 0 : (tokens_ - origin_) % kPageRows;

  std::vector<PageRef> pages;  // those from the tail page on
  pages.reserve(index(needed - full));
  for (std::int64_t i = full; i < needed; ++i) {
    const bool held = i < static_cast<std::int64_t>(pages_.size());
    if (held && !pages_[index(i)].shared()) {
      pages.push_back(pages_[index(i)]);
      continue;
    }
    pages.push_back(pool.allocate());
    if (held && i == full && tail_rows > 0) {
      const std::size_t row = row_bytes(format_.type, format_.width);
      for (const std::size_t half : {std::size_t{0}, index(kPageRows) * row}) {
        std::memcpy(pages.back().data() + half, pages_[index(i)].data() + half, index(tail_rows) * row);
      }
    }
  }
  pages_.reserve(index(needed));
  if (compressing_ && tokens_ < anchor_capacity()) own_anchors();

  pages_.resize(index(full));
  for (PageRef& page : pages) pages_.push_back(std::move(page));
} catch (const std::bad_alloc&) {
  throw OutOfMemory(fmt::format("the system gave no memory for {} more rows of a KV head", extra));
}

void HeadRows::write(std::int64_t position, const float* k, const float* v) noexcept {
  const std::size_t row = row_bytes(format_.type, format_.width);
  std::byte* to = nullptr;
  std::int64_t rows = kPageRows;
  if (compressing_ && position < rule_.sinks) {
    to = anchors_->data() + index(position) * row;
    rows = rule_.sinks;
  } else {
    const std::int64_t at = position - origin_;
    to = pages_[index(at / kPageRows)].data() + index(at % kPageRows) * row;
  }
  store_row(format_.type, k, to, format_.width);
  store_row(format_.type, v, to + index(rows) * row, format_.width);
}

void HeadRows::release_reserved() noexcept { pages_.resize(index(pages_for(tokens_))); }

void HeadRows::commit(std::int64_t rows) noexcept {
  tokens_ += rows;
  release_reserved();
  if (!compressing_) return;
  n_anchors_ = anchors_of(tokens_);
  if (tokens_ > 0) drop_until(rule_.window_begin(tokens_ - 1));
}

// One row after the other in the order of positions, so that the sums do not depend on how rows came in batches.
void HeadRows::drop_until(std::int64_t position) noexcept {
  if (position <= first_) return;
  if (rule_.compensate) {
    const std::size_t v_offset = index(kPageRows) * row_bytes(format_.type, format_.width);
    for (std::int64_t p = first_; p < position; ++p) {
      add_row(format_.type, paged_row(p), sum_k_.data(), format_.width);
      add_row(format_.type, paged_row(p) + v_offset, sum_v_.data(), format_.width);
    }
  }
  dropped_ += position - first_;
  first_ = position;
  const std::int64_t empty = (first_ - origin_) / kPageRows;
  pages_.erase(pages_.begin(), pages_.begin() + std::min<std::ptrdiff_t>(empty, std::ssize(pages_)));
  origin_ += empty * kPageRows;
}

void HeadRows::compress() try {
  if (rule_.everything || compressing_) return;
  const std::size_t row = row_bytes(format_.type, format_.width);
  const std::int64_t held = std::min(rule_.sinks, tokens_);
  auto anchors = std::make_shared<std::vector<std::byte>>(2 * index(rule_.sinks) * row);
  for (std::int64_t p = 0; p < held; ++p) {
    std::memcpy(anchors->data() + index(p) * row, paged_row(p), row);
    std::memcpy(anchors->data() + index(rule_.sinks + p) * row, paged_row(p) + index(kPageRows) * row, row);
  }
  std::vector<double> sum_k(rule_.compensate ? index(format_.width) : 0);
  std::vector<double> sum_v(sum_k);

  anchors_ = std::move(anchors);
  sum_k_ = std::move(sum_k);
  sum_v_ = std::move(sum_v);
  compressing_ = true;
  n_anchors_ = held;
  first_ = rule_.sinks;
  origin_ = first_ / kPageRows * kPageRows;
  pages_.erase(pages_.begin(), pages_.begin() + std::min<std::ptrdiff_t>(origin_ / kPageRows, std::ssize(pages_)));
  commit(0);
} catch (const std::bad_alloc&) {
  throw OutOfMemory("the system gave no memory to compress a KV head");
}

void HeadRows::keep(std::span<const std::int64_t> positions) try {
  if (!rule_.everything || compressing_) {
    throw InvalidArgument("only a head that keeps everything, and was not compressed, can keep a choice of its rows");
  }
  for (std::size_t i = 0; i < positions.size(); ++i) {
    const std::int64_t least = i == 0 ? 0 : positions[i - 1] + 1;
    if (positions[i] >= least && positions[i] < tokens_) continue;
    throw InvalidArgument(fmt::format("rows to keep: expected rising positions below {}, found {} as number {}",
                                      tokens_, positions[i], i));
  }
  const auto count = std::ssize(positions);
  if (count == tokens_) return;
  const std::size_t row = row_bytes(format_.type, format_.width);
  auto kept = std::make_shared<const std::vector<std::int64_t>>(positions.begin(), positions.end());
  auto anchors = std::make_shared<std::vector<std::byte>>(2 * index(count) * row);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::byte* from = paged_row(positions[index(i)]);
    std::memcpy(anchors->data() + index(i) * row, from, row);
    std::memcpy(anchors->data() + index(count + i) * row, from + index(kPageRows) * row, row);
  }
  anchors_ = std::move(anchors);
  kept_ = std::move(kept);
  compressing_ = true;
  n_anchors_ = count;
  dropped_ = tokens_ - count;
  first_ = tokens_;
  origin_ = first_ / kPageRows * kPageRows;
  pages_.clear();
} catch (const std::bad_alloc&) {
  throw OutOfMemory("the system gave no memory to keep a choice of a KV head's rows");
}

HeadUsage HeadRows::usage() const noexcept {
  const bool compensated = dropped_ > 0 && compensates();
  const std::int64_t stored = n_anchors_ + std::max<std::int64_t>(0, tokens_ - first_);
  HeadUsage usage;
  usage.rows = stored + (compensated ? 1 : 0);
  usage.row_bytes = 2 * index(stored) * row_bytes(format_.type, format_.width);
  if (compensated) usage.row_bytes += 2 * row_bytes(RowType::f32, format_.width);
  usage.allocated_bytes = pages_.size() * format_.page_bytes() + (anchors_ ? anchors_->size() : 0) +
                          (sum_k_.size() + sum_v_.size()) * sizeof(double) + kept().size_bytes();
  return usage;
}

}  // namespace razorkv
