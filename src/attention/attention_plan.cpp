#include "attention/attention_plan.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "attention/attention_scratch.h"
#include "attention/state.h"

namespace razorkv {
namespace {

std::size_t index(std::int64_t value) { return static_cast<std::size_t>(value); }

// Query rows whose states fit one pass of attend().
std::int64_t block_rows(std::int64_t group) { return std::max<std::int64_t>(1, kBlockVectors / group); }

std::int64_t block_states(std::int64_t group) { return block_rows(group) * group; }

// Writes one finished (query row, query head).
void finish(const PlanHead& head, std::int64_t row, std::int64_t g, const float* o, float m, float l, float* out) {
  finish_state(out + head.out_offset + row * head.out_row_stride + g * head.out_head_stride, o, l, head.kv->width);
  if (head.lse != nullptr) {
    head.lse[row * head.lse_row_stride + g] = l > 0.0F ? m + std::log(l) : -std::numeric_limits<float>::infinity();
  }
}

}  // namespace

// Walks over the heads and cuts them where a thread has its share.
class AttentionPlan::Builder {
 public:
  Builder(AttentionPlan& plan, int threads) : plan_(plan), threads_(threads) {}

  void build(std::span<const PlanHead> heads) {
    double total = 0.0;
    for (const PlanHead& head : heads) total += cost_of(head);
    share_ = total / threads_;
    plan_.first_item_.assign(1, 0);
    for (const PlanHead& head : heads) {
      if (by_keys(head)) {
        cut_keys(head);
      } else {
        cut_rows(head);
      }
    }
    plan_.first_item_.resize(index(threads_) + 1, plan_.items_.size());
  }

 private:
  static constexpr std::int64_t kFewVectors = 16;  // with fewer, keys cost more to read than to multiply
  static constexpr std::int64_t kReadCost = 4;     // reading a row of K and V, in query vectors
  static constexpr std::int64_t kLeastPages = 4;   // a piece of a head is worth its merge

  static std::int64_t rows_of(const PlanHead& head) { return std::ssize(head.kv->visible); }
  static std::int64_t seen(const Visible& v) { return v.anchors + std::max<std::int64_t>(0, v.end - v.begin) + 1; }

  static bool by_keys(const PlanHead& head) { return rows_of(head) * head.query.group <= kFewVectors; }

  static double key_cost(const PlanHead& head) {
    return static_cast<double>(rows_of(head) * head.query.group + kReadCost);
  }
  static double row_cost(const PlanHead& head, std::int64_t row) {
    return static_cast<double>(seen(head.kv->visible[index(row)]) * head.query.group);
  }
  static double cost_of(const PlanHead& head) {
    if (head.kv->visible.empty()) return 0.0;
    if (by_keys(head)) {
      const Visible all{head.kv->n_anchors, head.kv->visible.front().begin, head.kv->visible.back().end, 0};
      return static_cast<double>(seen(all)) * key_cost(head);
    }
    double total = 0.0;
    for (std::int64_t r = 0; r < rows_of(head); ++r) total += row_cost(head, r);
    return total;
  }

  bool last_thread() const { return std::ssize(plan_.first_item_) == threads_; }
  double left() const { return share_ * static_cast<double>(plan_.first_item_.size()) - done_; }
  void next_thread() { plan_.first_item_.push_back(plan_.items_.size()); }

  void add(const PlanHead& head, const AttentionSlice& slice, std::int64_t first_state, double cost) {
    plan_.items_.push_back({&head, slice, first_state});
    done_ += cost;
    if (!last_thread() && left() <= 0.0) next_thread();
  }

  void cut_keys(const PlanHead& head) {
    const KvHeadView& kv = *head.kv;
    if (kv.visible.empty()) return;
    const std::int64_t states = rows_of(head) * head.query.group;
    const std::int64_t end = std::max(kv.visible.front().begin, kv.visible.back().end);
    Split split{&head, plan_.state_count_, 0};
    AttentionSlice slice{0, rows_of(head), kv.visible.front().begin, end, true};
    for (bool more = true; more;) {
      slice.key_end = last_thread() ? end : cut(slice.key_begin, end, kv.origin, left() / key_cost(head));
      if (slice.key_end == slice.key_begin && end > slice.key_begin) {
        next_thread();
        continue;
      }
      more = slice.key_end < end;
      const bool whole = !more && split.pieces == 0;
      const double extra = slice.extras ? static_cast<double>(kv.n_anchors + 1) : 0.0;
      add(head, slice, whole ? -1 : split.first_state + split.pieces * states,
          (static_cast<double>(slice.key_end - slice.key_begin) + extra) * key_cost(head));
      if (!whole) ++split.pieces;
      slice.key_begin = slice.key_end;
      slice.extras = false;
    }
    plan_.state_count_ += split.pieces * states;
    if (split.pieces > 0) plan_.splits_.push_back(split);
  }

  // Where to end a piece that starts at `begin` and should have about `budget` keys: a page border or `end`.
  static std::int64_t cut(std::int64_t begin, std::int64_t end, std::int64_t origin, double budget) {
    constexpr std::int64_t kLeast = kLeastPages * kPageRows;
    const auto keys = static_cast<std::int64_t>(std::max(0.0, budget));
    if (keys + kLeast / 2 >= end - begin) return end;
    if (end - begin < 2 * kLeast) return keys >= (end - begin) / 2 ? end : begin;
    if (keys < kLeast / 2) return begin;
    const std::int64_t border = origin + (begin + std::max(keys, kLeast) - origin) / kPageRows * kPageRows;
    return std::min(border, end);
  }

  void cut_rows(const PlanHead& head) {
    const std::int64_t rows = rows_of(head);
    for (std::int64_t row = 0; row < rows;) {
      std::int64_t stop = row;
      double cost = 0.0;
      while (stop < rows && (last_thread() || cost + row_cost(head, stop) / 2 <= left()))
        cost += row_cost(head, stop++);
      if (stop == row) {
        next_thread();
        continue;
      }
      add(head, {row, stop, 0, std::numeric_limits<std::int64_t>::max(), true}, -1, cost);
      row = stop;
    }
  }

  AttentionPlan& plan_;
  const int threads_;
  double share_ = 0.0;
  double done_ = 0.0;
};

void AttentionPlan::prepare(int max_threads) {
  if (scratch_.size() < index(max_threads)) scratch_.resize(index(max_threads));
}

StateView AttentionPlan::states(std::int64_t first) noexcept {
  return {state_o_.data() + first * width_, state_m_.data() + first, state_l_.data() + first};
}

void AttentionPlan::build(std::span<const PlanHead> heads, int threads) {
  prepare(threads);
  items_.clear();
  splits_.clear();
  state_count_ = 0;
  width_ = 0;
  std::int64_t group = 1;
  for (const PlanHead& head : heads) {
    width_ = std::max(width_, head.kv->width);
    group = std::max(group, head.query.group);
  }
  Builder(*this, threads).build(heads);
  const std::size_t floats = attend_scratch_floats(group, width_) + index(block_states(1) + group) * index(width_ + 2);
  for (std::vector<float>& scratch : scratch_) {
    if (scratch.size() < floats) scratch.resize(floats);
  }
  if (state_m_.size() < index(state_count_)) {
    state_m_.resize(index(state_count_));
    state_l_.resize(index(state_count_));
  }
  if (state_o_.size() < index(state_count_ * width_)) state_o_.resize(index(state_count_ * width_));
}

void AttentionPlan::run(int thread, float* out) noexcept {
  float* const scratch = scratch_[index(thread)].data();
  for (std::size_t i = first_item_[index(thread)]; i < first_item_[index(thread) + 1]; ++i) {
    const Item& item = items_[i];
    const PlanHead& head = *item.head;
    const std::int64_t group = head.query.group;
    const std::int64_t width = head.kv->width;
    if (item.first_state >= 0) {
      attend(*head.kv, head.query, item.slice, states(item.first_state), scratch);
      continue;
    }
    float* const o = scratch + attend_scratch_floats(group, width);
    const StateView block{o, o + block_states(group) * width, o + block_states(group) * (width + 1)};
    AttentionSlice slice = item.slice;
    for (; slice.row_begin < item.slice.row_end; slice.row_begin = slice.row_end) {
      slice.row_end = std::min(item.slice.row_end, slice.row_begin + block_rows(group));
      attend(*head.kv, head.query, slice, block, scratch);
      for (std::int64_t s = 0; s < (slice.row_end - slice.row_begin) * group; ++s) {
        finish(head, slice.row_begin + s / group, s % group, o + s * width, block.m[s], block.l[s], out);
      }
    }
  }
}

void AttentionPlan::merge(int thread, int threads, float* out) noexcept {
  for (std::size_t i = index(thread); i < splits_.size(); i += index(threads)) {
    const Split& split = splits_[i];
    const std::int64_t group = split.head->query.group;
    const std::int64_t width = split.head->kv->width;
    const std::int64_t count = std::ssize(split.head->kv->visible) * group;
    for (std::int64_t s = 0; s < count; ++s) {
      // Pieces are [count, width] each, from the split's first state on.
      float* const o = states(split.first_state).o + s * width;
      float& m = state_m_[index(split.first_state + s)];
      float& l = state_l_[index(split.first_state + s)];
      for (std::int64_t p = 1; p < split.pieces; ++p) {
        const std::int64_t at = split.first_state + p * count;
        merge_state(o, m, l, states(at).o + s * width, state_m_[index(at + s)], state_l_[index(at + s)], width);
      }
      finish(*split.head, s / group, s % group, o, m, l, out);
    }
  }
}

}  // namespace razorkv
