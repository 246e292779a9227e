#include "support/plain_attention_hook.h"

#include <ggml.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

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
  std::vector<double> weights;
  std::vector<double> sum(static_cast<std::size_t>(width));
  for (std::int64_t t = 0; t < n; ++t) {
    const std::int64_t end = before + t + 1;
    const std::int64_t begin = shape.sliding ? std::max<std::int64_t>(0, end - config_.sliding_window) : 0;
    for (std::int64_t head = 0; head < shape.heads; ++head) {
      const std::int64_t kv_head = head / (shape.heads / shape.kv_heads);
      const float* query = q + (t * shape.heads + head) * width;
      weights.clear();
      double largest = -std::numeric_limits<double>::infinity();
      for (std::int64_t j = begin; j < end; ++j) {
        const float* key = store.k.data() + j * row + kv_head * width;
        double logit = 0.0;
        for (std::int64_t d = 0; d < width; ++d) logit += static_cast<double>(query[d]) * static_cast<double>(key[d]);
        logit *= static_cast<double>(config_.attention_scale);
        const auto cap = static_cast<double>(config_.attention_soft_cap);
        if (cap != 0.0) logit = cap * std::tanh(logit / cap);
        weights.push_back(logit);
        largest = std::max(largest, logit);
      }
      std::fill(sum.begin(), sum.end(), 0.0);
      double total = 0.0;
      for (std::int64_t j = begin; j < end; ++j) {
        const double weight = std::exp(weights[static_cast<std::size_t>(j - begin)] - largest);
        const float* value = store.v.data() + j * row + kv_head * width;
        total += weight;
        for (std::int64_t d = 0; d < width; ++d) {
          sum[static_cast<std::size_t>(d)] += weight * static_cast<double>(value[d]);
        }
      }
      float* target = out + (t * shape.heads + head) * width;
      for (std::int64_t d = 0; d < width; ++d) {
        target[d] = static_cast<float>(sum[static_cast<std::size_t>(d)] / total);
      }
    }
  }
}

}  // namespace razorkv::test
