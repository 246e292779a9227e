#include "engine/prompt_attention.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/key_weights.h"
#include "razorkv/error.h"

namespace razorkv {
namespace {

std::size_t index(std::int64_t value) { return static_cast<std::size_t>(value); }

}  // namespace

PromptAttention::PromptAttention(const Config& config, bool accumulate) : config_(config), accumulate_(accumulate) {
  for (const LayerConfig& layer : config.layers) {
    std::vector<HeadRecord>& heads = records_.emplace_back();
    if (layer.sliding) continue;
    const std::int64_t group = layer.heads / layer.kv_heads;
    heads.resize(index(layer.kv_heads));
    for (HeadRecord& head : heads) {
      head.q.resize(index(kMaxWindow * group * config.head_width));
      head.lse.resize(index(kMaxWindow * group));
    }
  }
}

const PromptAttention::HeadRecord& PromptAttention::record(std::int64_t layer, std::int64_t kv_head) const {
  return records_[index(layer)][index(kv_head)];
}

/// Strides of queries [rows, group, width].
QueryView PromptAttention::query_view(std::int64_t layer) const {
  const LayerConfig& shape = config_.layers[index(layer)];
  QueryView query;
  query.group = shape.heads / shape.kv_heads;
  query.head_stride = config_.head_width;
  query.row_stride = query.group * config_.head_width;
  query.scale = config_.attention_scale;
  query.soft_cap = config_.attention_soft_cap;
  return query;
}

void PromptAttention::add(const ObservedAttention& attention, std::int64_t kv_head) {
  std::vector<HeadRecord>& heads = records_[index(attention.layer)];
  if (heads.empty()) return;
  HeadRecord& head = heads[index(kv_head)];
  if (attention.begin != head.tokens || attention.heads[index(kv_head)].compressing()) {
    throw InvalidArgument(fmt::format("attention is recorded within one uncompressed prompt: expected row {}, found {}",
                                      head.tokens, attention.begin));
  }
  const std::int64_t all_heads = config_.layers[index(attention.layer)].heads;
  QueryView query = query_view(attention.layer);
  const std::int64_t row_floats = query.row_stride;  // floats of one row's group
  query.q = attention.q + kv_head * row_floats;
  query.row_stride = all_heads * config_.head_width;
  const float* lse = attention.lse + kv_head * query.group;
  for (std::int64_t r = std::max<std::int64_t>(0, attention.n - kMaxWindow); r < attention.n; ++r) {
    const std::int64_t place = (attention.begin + r) % kMaxWindow;
    std::copy_n(query.q + r * query.row_stride, row_floats, head.q.data() + place * row_floats);
    std::copy_n(lse + r * all_heads, query.group, head.lse.data() + place * query.group);
  }
  if (accumulate_) {
    head.received.resize(index(attention.begin + attention.n));
    HeadViewStorage storage;
    const KvHeadView view = attention.heads[index(kv_head)].view(attention.n, storage);
    add_key_weights(view, {query, attention.begin, attention.n, lse, all_heads}, head.received);
  }
  head.tokens += attention.n;
}

std::int64_t PromptAttention::tokens() const {
  for (const auto& heads : records_) {
    if (!heads.empty()) return heads.front().tokens;
  }
  return 0;
}

std::span<const double> PromptAttention::received(std::int64_t layer, std::int64_t kv_head) const {
  return record(layer, kv_head).received;
}

std::vector<double> PromptAttention::received_from_last(std::int64_t window, std::int64_t layer, std::int64_t kv_head,
                                                        const HeadRows& rows) const {
  const HeadRecord& head = record(layer, kv_head);
  const std::int64_t count = std::min(window, head.tokens);
  WeighingQueries queries{query_view(layer), head.tokens - count, count, nullptr, 0};
  const std::int64_t row_floats = queries.query.row_stride;
  std::vector<float> q(index(count * row_floats)), lse(index(count * queries.query.group));
  for (std::int64_t r = 0; r < count; ++r) {
    const std::int64_t place = (queries.first + r) % kMaxWindow;
    std::copy_n(head.q.data() + place * row_floats, row_floats, q.data() + r * row_floats);
    std::copy_n(head.lse.data() + place * queries.query.group, queries.query.group,
                lse.data() + r * queries.query.group);
  }
  queries.query.q = q.data();
  queries.lse = lse.data();
  queries.lse_row_stride = queries.query.group;
  std::vector<double> received(index(head.tokens));
  HeadViewStorage storage;
  add_key_weights(rows.view(0, storage), queries, received);
  return received;
}

void PromptAttentionObserver::observe(const ObservedAttention& attention, int ith, int nth) noexcept {
  try {
    for (std::int64_t head = ith; head < std::ssize(attention.heads); head += nth) attention_.add(attention, head);
  } catch (...) {
    const std::lock_guard lock(error_mutex_);
    if (!error_) error_ = std::current_exception();
  }
}

}  // namespace razorkv
