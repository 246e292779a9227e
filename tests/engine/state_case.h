// A tiny model with a session's worth of state, for the tests of state files.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/engine.h"
#include "engine/state_file.h"
#include "support/decoder_runner.h"
#include "support/tiny_gguf.h"

namespace razorkv::test {

/// Two layers of two KV heads: one that keeps everything, and three local rules.
inline std::shared_ptr<const KvPolicy> mixed_policy(bool streaming = false) {
  KvPolicy policy{"razor", streaming, {}};
  policy.rules = {{HeadRule::all(), {false, 4, 16, 5, true}}, {{false, 2, 70, 0, false}, {false, 0, 9, 0, true}}};
  return std::make_shared<const KvPolicy>(std::move(policy));
}

/// The model of these options. `sliding`: gemma3 whose layer 0 has a window of 24.
inline std::shared_ptr<const LoadedModel> tiny_model(bool sliding = false, std::uint64_t seed = 1) {
  TinyOptions options;
  options.seed = seed;
  if (sliding) {
    options.architecture = "gemma3";
    options.sliding_window = 24;
    options.sliding_period = 2;
  }
  const std::string path = TinyGguf(options).write_temporary();
  auto model = LoadedModel::load(path, {});
  std::filesystem::remove(path);  // its mapping stays
  return model;
}

/// A sequence in an engine of its own, with its tokens and last logits.
struct Running {
  Running(std::shared_ptr<const LoadedModel> model, std::shared_ptr<const KvPolicy> rules, RowType type = RowType::f16)
      : policy(std::move(rules)), engine(std::move(model), {1, 1, type, 0}), sequence(engine.new_sequence(policy)) {
    engine.pool().poison_new_pages(true);
    state.policy_description = "razor for tests";
  }

  void feed(const std::vector<Token>& tokens) {
    const BatchItem item{&sequence, tokens, 1};
    const std::span<const float> logits = engine.decode({&item, 1});
    state.logits.assign(logits.begin(), logits.end());
    state.tokens.insert(state.tokens.end(), tokens.begin(), tokens.end());
  }
  void feed_random(std::int64_t count, std::uint32_t seed) {
    feed(random_tokens(count, engine.model().config().vocabulary, seed));
  }

  void save(const std::string& path) const { write_state(path, engine, sequence, state); }
  /// Takes the state over.
  void load(const std::string& path) {
    LoadedState loaded = read_state(path, engine, policy, "the tests' own");
    sequence = std::move(loaded.sequence);
    state = std::move(loaded.state);
  }

  /// Logits of `count` greedy tokens, fed to a snapshot.
  std::vector<float> greedy(int count) {
    KvSequence branch = sequence;
    std::vector<float> all = state.logits;
    std::vector<float> last = state.logits;
    for (int i = 0; i < count; ++i) {
      const auto next = static_cast<Token>(std::max_element(last.begin(), last.end()) - last.begin());
      const BatchItem item{&branch, {&next, 1}, 1};
      const std::span<const float> logits = engine.decode({&item, 1});
      last.assign(logits.begin(), logits.end());
      all.insert(all.end(), last.begin(), last.end());
    }
    return all;
  }

  std::shared_ptr<const KvPolicy> policy;
  Engine engine;
  KvSequence sequence;
  SavedState state;
};

}  // namespace razorkv::test
