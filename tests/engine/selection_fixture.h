// A recorded prefill of a tiny model, and its attention in double precision, with whole matrices.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "engine/engine_fixture.h"
#include "engine/prompt_attention.h"

namespace razorkv::test {

/// A tiny model of so many query and KV heads.
inline TinyOptions tiny_heads(std::pair<int, int> heads) {
  TinyOptions made;
  made.heads = heads.first;
  made.kv_heads = heads.second;
  return made;
}

/// Keeps every query that it sees beside recording. One thread.
class QueryKeeper : public AttentionObserver {
 public:
  QueryKeeper(PromptAttention& attention, std::int64_t layers)
      : recorder_(attention), queries(static_cast<std::size_t>(layers)) {}
  void observe(const ObservedAttention& seen, int ith, int nth) noexcept override {
    recorder_.observe(seen, ith, nth);
    std::vector<float>& all = queries[static_cast<std::size_t>(seen.layer)];
    all.insert(all.end(), seen.q, seen.q + seen.n * row_floats);
  }
  std::exception_ptr error() const { return recorder_.error(); }

 private:
  PromptAttentionObserver recorder_;

 public:
  std::int64_t row_floats = 0;              ///< query heads * width
  std::vector<std::vector<float>> queries;  ///< [layer][tokens, heads, width]
};

struct RecordedPrefill {
  RecordedPrefill(const TinyOptions& options, std::int64_t tokens, std::int64_t batch, bool accumulate = true)
      : tiny(options),
        heads(options.heads),
        kv_heads(options.kv_heads),
        width(options.head_width),
        scale(static_cast<double>(tiny.model->config().attention_scale)),
        attention(tiny.model->config(), accumulate),
        keeper(attention, options.layers),
        whole(tiny.engine.new_sequence(tiny.engine.full_policy())) {
    keeper.row_floats = heads * width;
    tiny.engine.set_observer(&keeper);
    tiny.feed(whole, random_tokens(tokens, tiny.vocabulary(), 21), batch);
    tiny.engine.set_observer(nullptr);
  }

  /// Weights that the key rows get from queries [first_query, tokens) of the group, summed. Double precision.
  std::vector<double> expected(std::int64_t layer, std::int64_t kv_head, std::int64_t first_query) const {
    const std::int64_t n = whole.tokens();
    const std::int64_t group = heads / kv_heads;
    std::vector<std::vector<float>> keys;
    std::vector<float> k(static_cast<std::size_t>(width)), v(k);
    for (std::int64_t p = 0; p < n; ++p) {
      whole.layer(layer)[static_cast<std::size_t>(kv_head)].read(p, k.data(), v.data());
      keys.push_back(k);
    }
    std::vector<double> sums(static_cast<std::size_t>(n));
    for (std::int64_t query = first_query; query < n; ++query) {
      for (std::int64_t head = kv_head * group; head < (kv_head + 1) * group; ++head) {
        const float* q = keeper.queries[static_cast<std::size_t>(layer)].data() + (query * heads + head) * width;
        std::vector<double> weights;
        for (std::int64_t p = 0; p <= query; ++p) {
          double logit = 0.0;
          for (std::int64_t i = 0; i < width; ++i) {
            logit += static_cast<double>(q[i]) *
                     static_cast<double>(keys[static_cast<std::size_t>(p)][static_cast<std::size_t>(i)]);
          }
          weights.push_back(std::exp(logit * scale));
        }
        double total = 0.0;
        for (const double weight : weights) total += weight;
        for (std::size_t p = 0; p < weights.size(); ++p) sums[p] += weights[p] / total;
      }
    }
    return sums;
  }

  std::shared_ptr<const KvPolicy> selecting(const RowSelection& selection) const {
    auto policy = std::make_shared<KvPolicy>(*tiny.engine.full_policy());
    policy->name = "selecting";
    policy->selection = selection;
    return policy;
  }

  TinyEngine tiny;
  std::int64_t heads;
  std::int64_t kv_heads;
  std::int64_t width;
  double scale;
  PromptAttention attention;
  QueryKeeper keeper;
  KvSequence whole;
};

}  // namespace razorkv::test
