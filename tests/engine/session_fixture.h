// A tiny random model behind the public interface.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "razorkv/session.h"
#include "support/decoder_runner.h"
#include "support/tiny_gguf.h"
#include "support/tiny_vocabulary.h"

namespace razorkv::test {

inline Model tiny_public_model(TinyOptions options = {}) {
  options.vocabulary = kTinyVocabulary;
  TinyGguf gguf(options);
  gguf.edit_metadata(set_tiny_vocabulary);
  const std::string path = gguf.write_temporary();
  Model model = Model::load(path);
  std::filesystem::remove(path);  // its mapping stays
  return model;
}

inline std::vector<Token> text(std::int64_t count, std::uint32_t seed) {
  return random_tokens(count, kTinyVocabulary, seed);
}

inline Policy razor(const Model& model, std::int64_t window, PrefillMode prefill = PrefillMode::exact,
                    const std::string& heads = "0:1,1:0") {
  PolicyOptions options;
  options.heads = heads;
  options.window = window;
  options.window_divisor = 0;
  options.prefill = prefill;
  return Policy::make(model, options);
}

/// One thread: ggml's threads spin while they wait, which is slow where tests run side by side.
inline SessionOptions one_thread(KvType type = KvType::f16, std::int64_t micro_batch = 512) {
  SessionOptions options;
  options.threads = 1;
  options.micro_batch = micro_batch;
  options.kv_type = type;
  return options;
}

inline std::vector<float> logits(const Session& session) { return {session.logits().begin(), session.logits().end()}; }

/// Feeds the question in one batch, then greedy tokens; logits of every step. The session moves on.
inline std::vector<float> ask(Session& session, std::span<const Token> question, int answer = 5) {
  session.feed(question);
  std::vector<float> all = logits(session);
  for (int i = 0; i < answer; ++i) {
    const auto best = std::max_element(session.logits().begin(), session.logits().end());
    const auto next = static_cast<Token>(best - session.logits().begin());
    session.feed({&next, 1});
    all.insert(all.end(), session.logits().begin(), session.logits().end());
  }
  return all;
}

}  // namespace razorkv::test
