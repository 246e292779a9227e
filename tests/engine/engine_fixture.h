// A tiny model with its engine, and the ways in which tests feed it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "model/loaded_model.h"
#include "support/decoder_runner.h"
#include "support/plain_attention_hook.h"
#include "support/tiny_gguf.h"

namespace razorkv::test {

using Tokens = std::vector<Token>;
using Logits = std::vector<float>;

// One thread: ggml's threads spin while they wait, which is slow where tests run side by side.
inline EngineSettings exact_settings(int threads = 1) { return {threads, threads, RowType::f32, 0}; }

struct TinyEngine {
  explicit TinyEngine(const TinyGguf& gguf, const EngineSettings& settings = exact_settings())
      : model(LoadedModel::load(gguf.write_temporary(), {})), engine(model, settings) {}
  explicit TinyEngine(const TinyOptions& options, const EngineSettings& settings = exact_settings())
      : TinyEngine(TinyGguf(options), settings) {}

  std::int64_t vocabulary() const { return model->config().vocabulary; }

  /// Heads alternate between everything and `local`, so that every layer has both.
  std::shared_ptr<const KvPolicy> mixed(const HeadRule& local, bool streaming = false) const {
    auto policy = std::make_shared<KvPolicy>();
    policy->name = "mixed";
    policy->streaming = streaming;
    for (std::int64_t l = 0; l < model->config().layer_count(); ++l) {
      auto& heads = policy->rules.emplace_back();
      for (std::int64_t h = 0; h < model->config().layers[static_cast<std::size_t>(l)].kv_heads; ++h) {
        heads.push_back((l + h) % 2 == 0 ? local : HeadRule::all());
      }
    }
    return policy;
  }
  std::shared_ptr<const KvPolicy> uniform(const HeadRule& rule, bool streaming = false) const {
    auto policy = std::make_shared<KvPolicy>();
    policy->name = "uniform";
    policy->streaming = streaming;
    for (const LayerConfig& layer : model->config().layers) {
      policy->rules.emplace_back(static_cast<std::size_t>(layer.kv_heads), rule);
    }
    return policy;
  }

  /// Appends tokens in batches of `size`; logits of every row.
  Logits feed(KvSequence& sequence, std::span<const Token> tokens, std::int64_t size) {
    Logits all;
    for (std::size_t done = 0; done < tokens.size();) {
      const std::size_t n = std::min(static_cast<std::size_t>(size), tokens.size() - done);
      const BatchItem item{&sequence, tokens.subspan(done, n), static_cast<std::int64_t>(n)};
      const std::span<const float> logits = engine.decode({&item, 1});
      all.insert(all.end(), logits.begin(), logits.end());
      done += n;
    }
    return all;
  }

  /// Logits of every row in double-precision attention: prompt rows see everything, rows from `compressed_from` on what
  /// `policy` keeps.
  Logits reference(std::span<const Token> tokens, const KvPolicy& policy, std::int64_t compressed_from) const {
    PlainAttentionHook hook(model->config());
    hook.compress(policy.rules, compressed_from);
    return run_decoder(*model, hook, {tokens.begin(), tokens.end()}, 0);
  }

  std::shared_ptr<const LoadedModel> model;
  Engine engine;
};

/// Rows [begin, end) of logits [rows, vocabulary].
inline Logits rows(const Logits& logits, std::int64_t vocabulary, std::int64_t begin, std::int64_t end) {
  return {logits.begin() + begin * vocabulary, logits.begin() + end * vocabulary};
}

}  // namespace razorkv::test
