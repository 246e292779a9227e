// Exact attention in double precision with a growing K/V store: lets the graph be tested without the cache.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "model/config.h"
#include "model/decoder_graph.h"

namespace razorkv::test {

/// One sequence. Every graph that is built with the hook must be computed once before the next is built.
class PlainAttentionHook final : public AttentionHook {
 public:
  explicit PlainAttentionHook(const Config& config);

  ggml_tensor* attend(ggml_context* context, ggml_cgraph* graph, std::int64_t layer,
                      const LayerTensors& tensors) override;

  /// Computes the rows [head_width * heads, n] of layer `layer`; for the graph's callback.
  void compute(std::int64_t layer, const float* q, const float* k, const float* v, std::int64_t n, float* out);

 private:
  struct Store {
    PlainAttentionHook* owner = nullptr;
    std::int64_t layer = 0;
    std::vector<float> k, v;  ///< [tokens, kv_heads, head_width]
  };

  const Config& config_;
  std::deque<Store> stores_;
};

}  // namespace razorkv::test
