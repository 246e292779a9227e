// Exact attention in double precision with a growing K/V store: lets the graph be tested without the cache.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "cache/head_rule.h"
#include "model/config.h"
#include "model/decoder_graph.h"

namespace razorkv::test {

/// One sequence. Every graph that is built with the hook must be computed once before the next is built.
class PlainAttentionHook final : public AttentionHook {
 public:
  explicit PlainAttentionHook(const Config& config);

  /// Query rows at positions >= `from` see what a compressed head keeps by `rules` [layer][KV head]: sinks, the mean of
  /// the dropped rows counted N times, window. Written from the definition in algorithm section 1; nothing is dropped.
  void compress(std::vector<std::vector<HeadRule>> rules, std::int64_t from);

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

  /// One query head of one row: positions [0, end) of its KV head exist. key, value: row 0 of that head, `stride`
  /// apart.
  void attend_row(const float* query, const float* key, const float* value, std::int64_t stride, std::int64_t end,
                  const HeadRule& rule, float* out) const;

  const Config& config_;
  std::deque<Store> stores_;
  std::vector<std::vector<HeadRule>> rules_;
  std::int64_t compressed_from_ = 0;
};

}  // namespace razorkv::test
