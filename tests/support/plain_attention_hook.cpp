#include "support/plain_attention_hook.h"

#include <ggml.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

namespace razorkv::test {

PlainAttentionHook::PlainAttentionHook(const Config& config) : config_(config) {
  for (std::int64_t i = 0; i < config.layer_count(); ++i) stores_.push_back({this, i, {}, {}});
}

ggml_tensor* PlainAttentionHook::attend(ggml_context* context, ggml_cgraph* /*graph*/, std::int64_t layer,
                                        const LayerTensors& tensors) {
  std::array<ggml_tensor*, 3> arguments = {tensors.q, tensors.k, tensors.v};
  const auto callback = [](ggml_tensor* out, int thread, int /*threads*/, void* user) {
    if (thread != 0) return;
    auto* store = static_cast<Store*>(user);
    store->owner->compute(store->layer, static_cast<const float*>(out->src[0]->data),
                          static_cast<const float*>(out->src[1]->data), static_cast<const float*>(out->src[2]->data),
                          out->ne[1], static_cast<float*>(out->data));
  };
  return ggml_custom_4d(context, GGML_TYPE_F32, tensors.q->ne[0] * tensors.q->ne[1], tensors.q->ne[2], 1, 1,
                        arguments.data(), 3, callback, 1, &stores_[static_cast<std::size_t>(layer)]);
}

void PlainAttentionHook::compute(std::int64_t layer, const float* q, const float* k, const float* v, std::int64_t n,
                                 float* out) {
  Store& store = stores_[static_cast<std::size_t>(layer)];
  const LayerConfig& shape = config_.layers[static_cast<std::size_t>(layer)];
  const std::int64_t width = config_.head_width;
  const std::int64_t row = shape.kv_heads * width;
  const std::int64_t before = static_cast<std::int64_t>(store.k.size()) / row;
  store.k.insert(store.k.end(), k, k + n * row);
  store.v.insert(store.v.end(), v, v + n * row);
  for (std::int64_t t = 0; t < n; ++t) {
    const std::int64_t end = before + t + 1;
    for (std::int64_t head = 0; head < shape.heads; ++head) {
      const std::int64_t kv_head = head / (shape.heads / shape.kv_heads);
      HeadRule rule;
      if (shape.sliding) {
        rule = HeadRule::sliding(config_.sliding_window);
      } else if (!rules_.empty() && end - 1 >= compressed_from_) {
        rule = rules_[static_cast<std::size_t>(layer)][static_cast<std::size_t>(kv_head)];
      }
      attend_row(q + (t * shape.heads + head) * width, store.k.data() + kv_head * width,
                 store.v.data() + kv_head * width, row, end, rule, out + (t * shape.heads + head) * width);
    }
  }
}

void PlainAttentionHook::compress(std::vector<std::vector<HeadRule>> rules, std::int64_t from) {
  rules_ = std::move(rules);
  compressed_from_ = from;
}

void PlainAttentionHook::attend_row(const float* query, const float* key, const float* value, std::int64_t stride,
                                    std::int64_t end, const HeadRule& rule, float* out) const {
  struct Seen {
    double logit = 0.0;
    std::vector<double> value;
  };
  const auto width = static_cast<std::size_t>(config_.head_width);
  const auto row = [&](const float* rows, std::int64_t position) {
    return std::vector<double>(rows + position * stride, rows + position * stride + config_.head_width);
  };
  const auto logit = [&](const std::vector<double>& k) {
    double dot = 0.0;
    for (std::size_t d = 0; d < width; ++d) dot += static_cast<double>(query[d]) * k[d];
    dot *= static_cast<double>(config_.attention_scale);
    const auto cap = static_cast<double>(config_.attention_soft_cap);
    return cap != 0.0 ? cap * std::tanh(dot / cap) : dot;
  };
  std::int64_t window_rows = end;
  if (!rule.everything) {
    window_rows = rule.window_floor;
    if (rule.window_divisor > 0) window_rows = std::max(window_rows, end / rule.window_divisor);
  }
  std::vector<Seen> seen;
  std::vector<double> mean_k(width, 0.0);
  std::vector<double> mean_v(width, 0.0);
  std::int64_t dropped = 0;
  for (std::int64_t j = 0; j < end; ++j) {
    if (rule.everything || j < rule.sinks || j >= end - window_rows) {
      seen.push_back({logit(row(key, j)), row(value, j)});
      continue;
    }
    ++dropped;
    for (std::size_t d = 0; d < width; ++d) {
      mean_k[d] += row(key, j)[d];
      mean_v[d] += row(value, j)[d];
    }
  }
  if (dropped > 0 && rule.compensate) {
    for (std::size_t d = 0; d < width; ++d) {
      mean_k[d] /= static_cast<double>(dropped);
      mean_v[d] /= static_cast<double>(dropped);
    }
    seen.push_back({logit(mean_k) + std::log(static_cast<double>(dropped)), mean_v});
  }
  double largest = -std::numeric_limits<double>::infinity();
  for (const Seen& s : seen) largest = std::max(largest, s.logit);
  std::vector<double> sum(width, 0.0);
  double total = 0.0;
  for (const Seen& s : seen) {
    const double weight = std::exp(s.logit - largest);
    total += weight;
    for (std::size_t d = 0; d < width; ++d) sum[d] += weight * s.value[d];
  }
  for (std::size_t d = 0; d < width; ++d) out[d] = static_cast<float>(sum[d] / total);
}

}  // namespace razorkv::test
