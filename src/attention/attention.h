// Attention of query rows over the rows of one KV head, as attention states.
//
// A state (o, m, l) of one query row and one query head stands for any set of key rows:
//   m = max of the logits, l = sum of exp(logit - m), o = sum of exp(logit - m) * v   (o is not normalised)
// The empty set is m = -inf, l = 0, o = 0. States of disjoint sets merge associatively (state.h), so sinks,
// window, compensation token and pieces of a long head are all computed by the same code.
//
// Logit of a row:  soft_cap(scale * q.k)  with soft_cap(x) = cap * tanh(x / cap), or x where cap = 0.
// The compensation row of N dropped rows adds ln N after scale and soft-cap (algorithm: 2407.15891, section 1).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace razorkv {

enum class RowType : std::uint8_t { f32, f16 };

/// Bytes of one row of `width` elements.
constexpr std::size_t row_bytes(RowType type, std::int64_t width) {
  return static_cast<std::size_t>(width) * (type == RowType::f32 ? 4U : 2U);
}

/// Rows per page, in every page of every head.
inline constexpr std::int64_t kPageRows = 64;

/// Which rows one query row sees. Positions are those of the uncompressed sequence.
struct Visible {
  std::int64_t anchors = 0;  ///< the first `anchors` rows of the anchor block
  std::int64_t begin = 0;    ///< paged rows at positions [begin, end)
  std::int64_t end = 0;
  std::int64_t dropped = 0;  ///< N of its compensation row; 0 = it has none
};

/// The rows of one KV head as a batch of query rows sees them. Nothing is owned.
struct KvHeadView {
  RowType type = RowType::f32;
  std::int64_t width = 0;  ///< head width d, elements, same for K and V
  /// Anchors (sinks, or rows gathered by a policy): [n_anchors, width] each.
  const std::byte* anchor_k = nullptr;
  const std::byte* anchor_v = nullptr;
  std::int64_t n_anchors = 0;
  /// Page p holds positions [origin + p * kPageRows, origin + (p + 1) * kPageRows):
  /// K [kPageRows, width] at the page's start, V [kPageRows, width] right behind it. 64-byte aligned.
  std::span<const std::byte* const> pages;
  std::int64_t origin = 0;
  /// One entry per query row. `begin` and `end` do not fall from one query row to the next, and the ranges of query
  /// rows that see paged rows leave no gap between them. Rows outside all of them are never read.
  std::span<const Visible> visible;
  /// Compensation rows of the query rows, [visible.size(), width] float32; unread where Visible::dropped == 0.
  const float* comp_k = nullptr;
  const float* comp_v = nullptr;
};

/// Query rows of one KV head: row r, query head g of its group at q + r * row_stride + g * head_stride.
struct QueryView {
  const float* q = nullptr;
  std::int64_t row_stride = 0;   ///< elements
  std::int64_t head_stride = 0;  ///< elements
  std::int64_t group = 1;        ///< query heads that share this KV head
  float scale = 1.0F;
  float soft_cap = 0.0F;  ///< 0 = none
};

/// Where states go. Index of (query row r, query head g) is r * group + g, r counted from the first row computed.
struct StateView {
  float* o = nullptr;  ///< [rows, group, width], not normalised
  float* m = nullptr;  ///< [rows, group]
  float* l = nullptr;  ///< [rows, group]
};

/// The part of the work that one call does.
struct AttentionSlice {
  std::int64_t row_begin = 0;  ///< query rows [row_begin, row_end) of the view
  std::int64_t row_end = 0;
  std::int64_t key_begin = 0;  ///< paged positions are clipped to [key_begin, key_end)
  std::int64_t key_end = 0;
  bool extras = true;  ///< include anchors and compensation rows
};

/// States of the slice's query rows over the slice's keys, written (not merged) to `out`.
/// `scratch` holds attend_scratch_floats() floats and belongs to the calling thread. Never throws; safe to call
/// from many threads on one view.
void attend(const KvHeadView& kv, const QueryView& query, const AttentionSlice& slice, const StateView& out,
            float* scratch) noexcept;

/// Upper bound of the scratch that attend() needs for these shapes, in floats.
std::size_t attend_scratch_floats(std::int64_t group, std::int64_t width) noexcept;

/// Name of the Highway target that attend() runs on this CPU, for example "AVX3_ZEN4".
const char* attention_target() noexcept;

}  // namespace razorkv
