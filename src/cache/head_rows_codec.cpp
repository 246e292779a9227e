#include "cache/head_rows_codec.h"

#include <algorithm>

namespace razorkv {
namespace {

std::size_t index(std::int64_t value) { return static_cast<std::size_t>(value); }

}  // namespace

/// Rows [begin, end) of a page.
struct HeadRowsCodec::LiveRows {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

HeadRowsCodec::LiveRows HeadRowsCodec::live_rows(const HeadRows& head, std::int64_t page) {
  const std::int64_t row_0 = head.origin_ + page * kPageRows;
  return {std::max<std::int64_t>(0, head.first_ - row_0), std::min(kPageRows, head.tokens_ - row_0)};
}

void HeadRowsCodec::write(BinaryWriter& out, const HeadRows& head) {
  const std::size_t row = row_bytes(head.format_.type, head.format_.width);
  out.u8(head.compressing_ ? 1 : 0);
  out.i64(head.tokens_);
  out.i64(head.first_);
  out.i64(head.origin_);
  out.i64(head.dropped_);
  if (head.compressing_) {
    const std::span<const std::byte> anchors(*head.anchors_);
    for (const std::int64_t half : {std::int64_t{0}, head.rule_.sinks}) {
      out.bytes(anchors.subspan(index(half) * row, index(head.n_anchors_) * row));
    }
  }
  for (std::int64_t p = 0; p < head.pages_for(head.tokens_); ++p) {
    const LiveRows live = live_rows(head, p);
    for (const std::int64_t half : {std::int64_t{0}, kPageRows}) {
      out.bytes({head.pages_[index(p)].data() + index(half + live.begin) * row, index(live.end - live.begin) * row});
    }
  }
  out.array<double>(head.sum_k_);
  out.array<double>(head.sum_v_);
}

void HeadRowsCodec::read(BinaryReader& in, HeadRows& head, PagePool& pool, std::int64_t tokens) {
  const std::size_t row = row_bytes(head.format_.type, head.format_.width);
  const std::int64_t sinks = head.compressing_ ? head.rule_.sinks : 0;
  std::int64_t first = sinks;
  if (head.compressing_ && tokens > 0) first = std::max(first, head.rule_.window_begin(tokens - 1));

  in.expect("a head whose rule applies (1) or not (0):", head.compressing_ ? 1 : 0, in.u8("a head's mode"));
  in.expect("a head's tokens:", tokens, in.i64("a head's tokens"));
  in.expect("a head's oldest live row:", first, in.i64("a head's oldest live row"));
  in.expect("the position of a head's first page:", first / kPageRows * kPageRows, in.i64("a head's first page"));
  in.expect("a head's dropped rows:", first - sinks, in.i64("a head's dropped rows"));
  head.tokens_ = tokens;
  head.first_ = first;
  head.origin_ = first / kPageRows * kPageRows;
  head.dropped_ = first - sinks;
  head.n_anchors_ = std::min(sinks, tokens);

  const std::int64_t live_rows_held = std::max<std::int64_t>(0, tokens - first);
  in.require(static_cast<std::uint64_t>(head.n_anchors_ + live_rows_held), 2 * row, "rows of a head");
  if (head.compressing_) {
    head.own_anchors();
    const std::span<std::byte> anchors(*head.anchors_);
    for (const std::int64_t half : {std::int64_t{0}, sinks}) {
      in.bytes(anchors.subspan(index(half) * row, index(head.n_anchors_) * row), "sinks of a head");
    }
  }
  const std::int64_t pages = head.pages_for(tokens);
  head.pages_.reserve(index(pages));
  for (std::int64_t p = 0; p < pages; ++p) {
    head.pages_.push_back(pool.allocate());
    const LiveRows live = live_rows(head, p);
    for (const std::int64_t half : {std::int64_t{0}, kPageRows}) {
      in.bytes({head.pages_.back().data() + index(half + live.begin) * row, index(live.end - live.begin) * row},
               "rows of a head");
    }
  }
  in.bytes(std::as_writable_bytes(std::span(head.sum_k_)), "sums of a head");
  in.bytes(std::as_writable_bytes(std::span(head.sum_v_)), "sums of a head");
}

}  // namespace razorkv
