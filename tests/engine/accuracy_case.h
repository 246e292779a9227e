// The engine beside libllama on a real model, both with f16 KV: distributions over running text, and greedy answers.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iostream>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "model/vocabulary.h"
#include "support/book_text.h"
#include "support/divergence.h"
#include "support/llama_reference.h"
#include "support/test_files.h"

namespace razorkv::test {

struct Accuracy {
  Divergence ours;    ///< the engine against libllama without flash attention
  Divergence noise;   ///< libllama with flash attention against itself without: what other rounding alone does
  double gap = 0.0;   ///< of libllama's two best logits where the greedy answers part; 0: they do not
  std::size_t equal;  ///< greedy tokens before they part
};

inline Token most_likely(std::span<const float> logits) {
  return static_cast<Token>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

/// Feeds `count` tokens of War and Peace to each in pieces, then lets each answer the first 96 of them with `answer`
/// greedy tokens of its own, which are printed.
inline Accuracy compare(const std::string& path, std::int64_t count, int answer) {
  constexpr std::int64_t kPiece = 128;  // keeps few rows of large vocabularies
  LlamaReference plain(path, {.f16_kv = true});
  LlamaReference flash(path, {.f16_kv = true, .flash = true});
  std::vector<Token> tokens = plain.tokenize(book_text(8000).value());
  tokens.resize(static_cast<std::size_t>(count));
  Engine engine(LoadedModel::load(path, {}), {});
  const std::int64_t row = engine.model().config().vocabulary;
  KvSequence sequence = engine.new_sequence(engine.full_policy());
  Accuracy found{};
  for (std::int64_t begin = 0; begin < count; begin += kPiece) {
    const std::vector<Token> piece(tokens.begin() + begin, tokens.begin() + std::min(count, begin + kPiece));
    const auto n = static_cast<std::int64_t>(piece.size());
    const double share = static_cast<double>(n) / static_cast<double>(count);
    const std::vector<float> expected = plain.feed(piece);
    const auto add = [&](Divergence& sum, const std::vector<float>& logits) {
      const Divergence one = divergence(logits, expected, row);
      sum.mean_kld += share * one.mean_kld;
      sum.same_top_share += share * one.same_top_share;
      sum.gap_shift = std::sqrt(sum.gap_shift * sum.gap_shift + share * one.gap_shift * one.gap_shift);
    };
    add(found.noise, flash.feed(piece));
    const BatchItem item{&sequence, piece, n};
    const std::span<const float> logits = engine.decode({&item, 1});
    add(found.ours, {logits.begin(), logits.end()});
  }

  plain.reset();
  sequence = engine.new_sequence(engine.full_policy());
  std::vector<Token> next(tokens.begin(), tokens.begin() + 96);
  std::vector<Token> theirs, ours;
  std::vector<std::vector<float>> their_logits;
  for (std::vector<Token> batch = next; static_cast<int>(theirs.size()) < answer; batch = {theirs.back()}) {
    const std::vector<float> all = plain.feed(batch);
    their_logits.emplace_back(all.end() - row, all.end());
    theirs.push_back(most_likely(their_logits.back()));
  }
  for (std::vector<Token> batch = next; static_cast<int>(ours.size()) < answer; batch = {ours.back()}) {
    const BatchItem item{&sequence, batch, 1};
    ours.push_back(most_likely(engine.decode({&item, 1})));
  }
  found.equal = static_cast<std::size_t>(std::mismatch(ours.begin(), ours.end(), theirs.begin()).first - ours.begin());
  if (found.equal < ours.size()) {
    const std::vector<float>& logits = their_logits[found.equal];
    found.gap =
        logits[static_cast<std::size_t>(theirs[found.equal])] - logits[static_cast<std::size_t>(ours[found.equal])];
  }
  const auto vocabulary = Vocabulary::open(path);
  std::cout << "  libllama: " << vocabulary->detokenize(theirs) << "\n  razorkv:  " << vocabulary->detokenize(ours)
            << "\n  " << found.equal << " of " << answer << " tokens equal, then a gap of " << found.gap << "\n  KLD "
            << found.ours.mean_kld << ", same top token " << found.ours.same_top_share << ", gap shift "
            << found.ours.gap_shift << "; libllama with and without flash attention: " << found.noise.mean_kld << ", "
            << found.noise.same_top_share << ", " << found.noise.gap_shift << "\n";
  for (const auto& [name, value] : {std::pair{"mean_kld", found.ours.mean_kld},
                                    {"same_top_share", found.ours.same_top_share},
                                    {"gap_shift", found.ours.gap_shift},
                                    {"flash_kld", found.noise.mean_kld},
                                    {"flash_same_top_share", found.noise.same_top_share},
                                    {"flash_gap_shift", found.noise.gap_shift},
                                    {"greedy_equal", static_cast<double>(found.equal)},
                                    {"greedy_gap", found.gap}}) {
    testing::Test::RecordProperty(name, std::to_string(value));
  }
  return found;
}

/// ggml rounds activations to 8 bits before a product with quantised weights, so the last place of one number can move
/// a whole row. libllama with flash attention is as right as libllama without: where those two differ by more than the
/// bounds of 2e-3 and 98%, the engine must be no farther from libllama than they are from each other, give or take the
/// spread over 512 rows.
inline void expect_as_close_as_libllama_to_itself(const char* name) {
  const auto model = model_file(name);
  if (!model) GTEST_SKIP() << missing_model(name);
  if (!book_text(8000)) GTEST_SKIP() << missing_data("books");
  const Accuracy found = compare(*model, 512, 64);
  EXPECT_LE(found.ours.mean_kld, std::max(2e-3, 1.5 * found.noise.mean_kld));
  EXPECT_GE(found.ours.same_top_share, std::min(0.98, found.noise.same_top_share - 0.02));
  // Greedy answers part at near ties only: rounding moves the gap of two logits by noise.gap_shift; 64 draws of a
  // normal distribution exceed five times that once in 27,000 answers.
  EXPECT_LE(found.gap, 5.0 * found.noise.gap_shift);
}

}  // namespace razorkv::test
