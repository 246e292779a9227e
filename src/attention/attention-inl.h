// Per-target code of attention.cpp: a block of query vectors against tiles of at most kPageRows key rows.
#if defined(RAZORKV_ATTENTION_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RAZORKV_ATTENTION_INL_H_
#undef RAZORKV_ATTENTION_INL_H_
#else
#define RAZORKV_ATTENTION_INL_H_
#endif

#include <algorithm>
#include <cmath>
#include <limits>

#include "attention/attention.h"
#include "attention/attention_scratch.h"
#include "attention/dot-inl.h"
#include "attention/load-inl.h"
#include "attention/product-inl.h"
#include "attention/softmax-inl.h"
#include "attention/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace razorkv {
namespace HWY_NAMESPACE {

inline const char* TargetName() { return hwy::TargetName(HWY_TARGET); }

/// Key and value rows in a piece of memory; rows [begin, end) of it may be read.
struct Tile {
  const std::byte* k;
  const std::byte* v;
  const std::byte* next;  ///< where the keys of the tile after it lie
  std::int64_t begin;
  std::int64_t end;
};

class BlockAttention {
 public:
  BlockAttention(const KvHeadView& kv, const QueryView& query, const AttentionSlice& slice, std::int64_t first,
                 std::int64_t count, const AttentionScratch& scratch)
      : kv_(kv), query_(query), slice_(slice), first_(first), count_(count), s_(scratch) {}

  void Run(const StateView& out) {
    Start();
    if (slice_.extras) Anchors();
    Pages();
    Finish(out);
  }

 private:
  std::int64_t RowOf(std::int64_t vector) const { return slice_.row_begin + (first_ + vector) / query_.group; }
  const Visible& VisibleTo(std::int64_t vector) const { return kv_.visible[static_cast<std::size_t>(RowOf(vector))]; }

  void Start() {
    const std::int64_t width = kv_.width;
    for (std::int64_t i = 0; i < count_; ++i) {
      const std::int64_t row = RowOf(i);
      const float* q = query_.q + row * query_.row_stride + (first_ + i) % query_.group * query_.head_stride;
      float* scaled = s_.q + i * s_.stride;
      float* o = s_.o + i * s_.stride;
      for (std::int64_t d = 0; d < width; ++d) scaled[d] = q[d] * query_.scale;
      std::fill_n(o, s_.stride, 0.0F);
      s_.m[i] = -std::numeric_limits<float>::infinity();
      s_.l[i] = 0.0F;
      if (slice_.extras && VisibleTo(i).dropped > 0) Compensate(row, scaled, i);
    }
  }

  // The state of the compensation row alone.
  void Compensate(std::int64_t row, const float* q, std::int64_t vector) {
    const std::int64_t width = kv_.width;
    const float* k = kv_.comp_k + row * width;
    float dot = 0.0F;
    for (std::int64_t d = 0; d < width; ++d) dot += q[d] * k[d];
    if (query_.soft_cap > 0.0F) dot = query_.soft_cap * std::tanh(dot / query_.soft_cap);
    s_.m[vector] = dot + std::log(static_cast<float>(VisibleTo(vector).dropped));
    s_.l[vector] = 1.0F;
    std::copy_n(kv_.comp_v + row * width, width, s_.o + vector * s_.stride);
  }

  void Anchors() {
    std::int64_t most = 0;
    for (std::int64_t i = 0; i < count_; ++i) most = std::max(most, VisibleTo(i).anchors);
    const std::size_t row = row_bytes(kv_.type, kv_.width);
    for (std::int64_t base = 0; base < most; base += kPageRows) {
      Tile tile = EmptyTile();
      for (std::int64_t i = 0; i < count_; ++i) See(tile, i, 0, VisibleTo(i).anchors - base);
      const std::size_t offset = static_cast<std::size_t>(base) * row;
      tile.k = kv_.anchor_k + offset;
      tile.v = kv_.anchor_v + offset;
      tile.next = tile.k;
      Attend(tile);
    }
  }

  void Pages() {
    // Query rows that see nothing say nothing about where the others begin.
    std::int64_t begin = slice_.key_end;
    std::int64_t end = slice_.key_begin;
    for (std::int64_t i = 0; i < count_; ++i) {
      const Visible& visible = VisibleTo(i);
      if (visible.begin >= visible.end) continue;
      begin = std::min(begin, std::max(visible.begin, slice_.key_begin));
      end = std::max(end, std::min(visible.end, slice_.key_end));
    }
    const std::size_t v_offset = static_cast<std::size_t>(kPageRows) * row_bytes(kv_.type, kv_.width);
    for (std::int64_t at = begin; at < end;) {
      const std::int64_t page = (at - kv_.origin) / kPageRows;
      const std::int64_t base = kv_.origin + page * kPageRows;
      Tile tile = EmptyTile();
      for (std::int64_t i = 0; i < count_; ++i) {
        const Visible& visible = VisibleTo(i);
        See(tile, i, std::max(begin, visible.begin) - base, std::min(end, visible.end) - base);
      }
      tile.k = kv_.pages[static_cast<std::size_t>(page)];
      tile.v = tile.k + v_offset;
      tile.next = static_cast<std::size_t>(page) + 1 < kv_.pages.size() ? kv_.pages[static_cast<std::size_t>(page) + 1]
                                                                        : tile.k;
      if (tile.begin < tile.end) Attend(tile);
      at = base + kPageRows;
    }
  }

  static Tile EmptyTile() { return {nullptr, nullptr, nullptr, kPageRows, 0}; }

  // The query vector sees rows [begin, end) of the tile, as far as they lie in it.
  void See(Tile& tile, std::int64_t vector, std::int64_t begin, std::int64_t end) {
    begin = std::max<std::int64_t>(begin, 0);
    end = std::min<std::int64_t>(end, kPageRows);
    if (begin >= end) {
      begin = kPageRows;
      end = 0;
    }
    begin_[vector] = static_cast<int>(begin);
    end_[vector] = static_cast<int>(end);
    tile.begin = std::min(tile.begin, begin);
    tile.end = std::max(tile.end, end);
  }

  void Attend(const Tile& tile) {
    if (kv_.type == RowType::f16) {
      Attend<hwy::float16_t>(tile);
    } else {
      Attend<float>(tile);
    }
  }

  template <class T>
  void Attend(const Tile& tile) {
#if HWY_TARGET != HWY_SCALAR
    if (count_ <= kLogitVectors && kv_.width % static_cast<std::int64_t>(hn::Lanes(hn::ScalableTag<float>())) == 0) {
      return AttendInPlace<T>(tile);
    }
#endif
    const auto width = static_cast<std::size_t>(kv_.width);
    const auto stride = static_cast<std::size_t>(s_.stride);
    Transpose(reinterpret_cast<const T*>(tile.k), width, tile.begin, tile.end, s_.k);
    Widen(reinterpret_cast<const T*>(tile.v), tile);
    for (std::int64_t first = 0; first < count_; first += kLogitVectors) {
      const std::int64_t n = std::min(kLogitVectors, count_ - first);
      int begin = kPageRows;
      int end = 0;
      for (std::int64_t i = first; i < first + n; ++i) {
        begin = std::min(begin, begin_[i]);
        end = std::max(end, end_[i]);
      }
      if (begin >= end) continue;
      MultiplyRows<float>(static_cast<std::size_t>(n), {s_.q + first * s_.stride, stride}, {s_.k, kPageRows}, width,
                          {s_.logits, kPageRows}, kPageRows, nullptr);
      float rescale[kLogitVectors];
      Softmax(first, n, rescale);
      MultiplyRows<float>(static_cast<std::size_t>(n), {s_.logits + begin, kPageRows},
                          {s_.v + begin * s_.stride, stride}, static_cast<std::size_t>(end - begin),
                          {s_.o + first * s_.stride, stride}, width, rescale);
    }
  }

  // Few query vectors: reading the rows costs more than the arithmetic, so nothing is converted beforehand.
  template <class T>
  void AttendInPlace(const Tile& tile) {
    const auto width = static_cast<std::size_t>(kv_.width);
    const auto stride = static_cast<std::size_t>(s_.stride);
    const auto n = static_cast<std::size_t>(count_);
    DotRows(n, s_.q, stride, reinterpret_cast<const T*>(tile.k), width, tile.begin, tile.end,
            reinterpret_cast<const T*>(tile.next), s_.logits);
    float rescale[kLogitVectors];
    Softmax(0, count_, rescale);
    const auto* v = reinterpret_cast<const T*>(tile.v) + static_cast<std::size_t>(tile.begin) * width;
    MultiplyRows<T>(n, {s_.logits + tile.begin, kPageRows}, {v, width}, static_cast<std::size_t>(tile.end - tile.begin),
                    {s_.o, stride}, width, rescale);
  }

  // Turns the logits of `n` query vectors into weights.
  void Softmax(std::int64_t first, std::int64_t n, float* rescale) {
    for (std::int64_t i = 0; i < n; ++i) {
      rescale[i] = SoftmaxRow(s_.logits + i * kPageRows, begin_[first + i], end_[first + i], query_.soft_cap,
                              s_.m[first + i], s_.l[first + i]);
    }
  }

  template <class T>
  void Widen(const T* v, const Tile& tile) {
    const auto width = static_cast<std::size_t>(kv_.width);
    for (std::int64_t r = tile.begin; r < tile.end; ++r) {
      WidenRow(v + r * kv_.width, s_.v + r * s_.stride, width);
      std::fill(s_.v + r * s_.stride + kv_.width, s_.v + (r + 1) * s_.stride, 0.0F);
    }
  }

  void Finish(const StateView& out) {
    for (std::int64_t i = 0; i < count_; ++i) {
      std::copy_n(s_.o + i * s_.stride, kv_.width, out.o + (first_ + i) * kv_.width);
      out.m[first_ + i] = s_.m[i];
      out.l[first_ + i] = s_.l[i];
    }
  }

  const KvHeadView& kv_;
  const QueryView& query_;
  const AttentionSlice& slice_;
  const std::int64_t first_;
  const std::int64_t count_;
  const AttentionScratch& s_;
  // Rows of the present tile that each query vector sees.
  int begin_[kBlockVectors];
  int end_[kBlockVectors];
};

inline void AttendBlock(const KvHeadView& kv, const QueryView& query, const AttentionSlice& slice, std::int64_t first,
                        std::int64_t count, const StateView& out, const AttentionScratch& scratch) {
  BlockAttention(kv, query, slice, first, count, scratch).Run(out);
}

}  // namespace HWY_NAMESPACE
}  // namespace razorkv
HWY_AFTER_NAMESPACE();

#endif  // include guard
