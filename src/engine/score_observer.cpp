#include "engine/score_observer.h"

#include <algorithm>
#include <cmath>

#include "attention/row_codec.h"

namespace razorkv {
namespace {

RowFormat key_format(const Config& config) { return {RowType::f32, config.head_width}; }

/// Key of a head without anchors, rows of the running batch included.
void read_key(const KvHeadView& view, std::int64_t position, float* k) {
  const std::int64_t row = position - view.origin;
  const std::size_t bytes = row_bytes(view.type, view.width);
  const std::byte* page = view.pages[static_cast<std::size_t>(row / kPageRows)];
  load_row(view.type, page + static_cast<std::size_t>(row % kPageRows) * bytes, k, view.width);
}

}  // namespace

ScoreObserver::ScoreObserver(const Config& config, const ScoringPrompt& prompt, bool before_rope)
    : config_(config),
      before_rope_(before_rope),
      sum_(HeadShape::of(config), prompt),
      pool_(key_format(config).page_bytes(), 0) {
  if (!before_rope) return;
  std::int64_t heads = 0;
  for (const LayerConfig& layer : config.layers) {
    heads = std::max(heads, layer.heads);
    const std::int64_t kept = layer.sliding ? 0 : layer.kv_heads;
    keys_.emplace_back(static_cast<std::size_t>(kept), HeadRows(key_format(config), HeadRule::all()));
  }
  lse_.resize(prompt.tokens.size() * static_cast<std::size_t>(heads));
}

void ScoreObserver::observe(const ObservedAttention& attention, int ith, int nth) noexcept {
  try {
    if (!config_.layers[static_cast<std::size_t>(attention.layer)].sliding) score(attention, ith, nth);
  } catch (...) {
    const std::lock_guard lock(error_mutex_);
    if (!error_) error_ = std::current_exception();
  }
}

void ScoreObserver::score(const ObservedAttention& attention, int ith, int nth) {
  const std::span<const HeadRows> heads =
      before_rope_ ? std::span<const HeadRows>(keys_[static_cast<std::size_t>(attention.layer)]) : attention.heads;
  std::vector<HeadViewStorage> storage(heads.size());
  std::vector<KvHeadView> views(heads.size());
  for (auto kv_head = static_cast<std::size_t>(ith); kv_head < heads.size(); kv_head += static_cast<std::size_t>(nth)) {
    if (before_rope_) keep_keys(attention, static_cast<std::int64_t>(kv_head));
    views[kv_head] = heads[kv_head].view(attention.n, storage[kv_head]);
    if (before_rope_) sum_before_rope(attention, static_cast<std::int64_t>(kv_head), views[kv_head]);
  }
  ScoredRows rows;
  rows.layer = attention.layer;
  rows.begin = attention.begin;
  rows.rows = attention.n;
  rows.scale = config_.attention_scale;
  rows.soft_cap = config_.attention_soft_cap;
  rows.q = before_rope_ ? attention.q_before_rope : attention.q;
  rows.lse = before_rope_ ? lse_.data() : attention.lse;
  rows.read_key = [&](std::int64_t kv_head, std::int64_t position, float* k) {
    read_key(views[static_cast<std::size_t>(kv_head)], position, k);
  };
  sum_.add(rows, ith, nth);
  if (!before_rope_) return;
  for (auto kv_head = static_cast<std::size_t>(ith); kv_head < heads.size(); kv_head += static_cast<std::size_t>(nth)) {
    keys_[static_cast<std::size_t>(attention.layer)][kv_head].commit(attention.n);
  }
}

void ScoreObserver::keep_keys(const ObservedAttention& attention, std::int64_t kv_head) {
  const LayerConfig& layer = config_.layers[static_cast<std::size_t>(attention.layer)];
  HeadRows& keys = keys_[static_cast<std::size_t>(attention.layer)][static_cast<std::size_t>(kv_head)];
  keys.reserve(pool_, attention.n);
  for (std::int64_t row = 0; row < attention.n; ++row) {
    const float* k = attention.k_before_rope + (row * layer.kv_heads + kv_head) * config_.head_width;
    keys.write(attention.begin + row, k, k);
  }
}

void ScoreObserver::sum_before_rope(const ObservedAttention& attention, std::int64_t kv_head, const KvHeadView& view) {
  const LayerConfig& layer = config_.layers[static_cast<std::size_t>(attention.layer)];
  const std::int64_t width = config_.head_width;
  const std::int64_t group = layer.heads / layer.kv_heads;
  QueryView query;
  query.q = attention.q_before_rope + kv_head * group * width;
  query.row_stride = layer.heads * width;
  query.head_stride = width;
  query.group = group;
  query.scale = config_.attention_scale;
  query.soft_cap = config_.attention_soft_cap;
  const auto states = static_cast<std::size_t>(attention.n * group);
  std::vector<float> o(states * static_cast<std::size_t>(width)), m(states), l(states);
  std::vector<float> scratch(attend_scratch_floats(group, width));
  attend(view, query, {0, attention.n, 0, attention.begin + attention.n, true}, {o.data(), m.data(), l.data()},
         scratch.data());
  for (std::int64_t row = 0; row < attention.n; ++row) {
    for (std::int64_t head = 0; head < group; ++head) {
      const auto state = static_cast<std::size_t>(row * group + head);
      lse_[static_cast<std::size_t>(row * layer.heads + kv_head * group + head)] = m[state] + std::log(l[state]);
    }
  }
}

}  // namespace razorkv
