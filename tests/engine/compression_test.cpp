// The compressed cache inside the engine: oracles O1, O2, O4, O5 and O8, and the double-precision reference.
#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <utility>

#include "engine/engine_fixture.h"

namespace razorkv::test {
namespace {

// Float32 graph and attention against double-precision attention in the same float32 graph; worst seen 3e-6.
constexpr double kReferenceError = 3e-5;
// The same where GELU comes from a table; see logits_test.cpp. Seen 4.7e-5; a wrong window gives 1e-2 and more.
constexpr double kGeluTableError = 5e-4;
// Two float32 runs that add in different orders; worst seen 3e-6.
constexpr double kOrderError = 3e-5;

TinyOptions with_heads(std::int64_t heads, std::int64_t kv_heads) {
  TinyOptions options;
  options.heads = heads;
  options.kv_heads = kv_heads;
  options.layers = 3;
  return options;
}

class Compression : public ::testing::TestWithParam<std::tuple<std::pair<int, int>, bool>> {
 protected:
  bool streaming() const { return std::get<1>(GetParam()); }
  TinyEngine tiny_{with_heads(std::get<0>(GetParam()).first, std::get<0>(GetParam()).second)};
  const std::int64_t vocabulary_ = tiny_.vocabulary();
};

TEST_P(Compression, EqualsTheReferenceWhateverTheBatches) {
  const HeadRule local{false, 4, 12, 4, true};
  const auto policy = tiny_.mixed(local, streaming());
  const Tokens tokens = random_tokens(150, vocabulary_, 7);
  const std::int64_t prompt = 90;
  const Logits expected = tiny_.reference(tokens, *policy, streaming() ? 0 : prompt);
  for (const std::int64_t size : {1, 7, 11, 12, 13, 24, 150}) {
    KvSequence sequence = tiny_.engine.new_sequence(policy);
    Logits found = tiny_.feed(sequence, std::span(tokens).first(static_cast<std::size_t>(prompt)), size);
    sequence.compress();
    const Logits after = tiny_.feed(sequence, std::span(tokens).subspan(static_cast<std::size_t>(prompt)), size);
    found.insert(found.end(), after.begin(), after.end());
    EXPECT_LE(worst_row_error(found, expected, vocabulary_), kReferenceError) << "batches of " << size;
    EXPECT_EQ(sequence.tokens(), 150);
  }
}

TEST_P(Compression, KeepingEverythingIsUncompressed) {
  const Tokens tokens = random_tokens(80, vocabulary_, 8);
  const auto run = [&](std::shared_ptr<const KvPolicy> policy) {
    KvSequence sequence = tiny_.engine.new_sequence(std::move(policy));
    Logits found = tiny_.feed(sequence, std::span(tokens).first(50), 16);
    sequence.compress();
    const Logits after = tiny_.feed(sequence, std::span(tokens).subspan(50), 1);
    found.insert(found.end(), after.begin(), after.end());
    return found;
  };
  const Logits off = run(tiny_.engine.full_policy());
  EXPECT_EQ(run(tiny_.uniform(HeadRule::all(), streaming())), off);
  const Logits big = run(tiny_.uniform({false, 4, 76, 0, true}, streaming()));
  EXPECT_LE(worst_row_error(big, off, vocabulary_), kOrderError);
}

// One dropped row is its own mean, so the first honest difference comes with the second: at S + W + 2 tokens.
TEST_P(Compression, FirstDifferenceComesWithTheSecondDroppedRow) {
  const std::int64_t sinks = 3;
  const std::int64_t window = 5;
  const Tokens tokens = random_tokens(16, vocabulary_, 9);
  const auto run = [&](std::shared_ptr<const KvPolicy> policy) {
    KvSequence sequence = tiny_.engine.new_sequence(std::move(policy));
    sequence.compress();
    return tiny_.feed(sequence, tokens, 1);
  };
  const Logits off = run(tiny_.engine.full_policy());
  const Logits on = run(tiny_.uniform({false, sinks, window, 0, true}, streaming()));
  const std::int64_t same = sinks + window + 1;
  EXPECT_LE(worst_row_error(rows(on, vocabulary_, 0, same), rows(off, vocabulary_, 0, same), vocabulary_), kOrderError);
  EXPECT_GE(worst_row_error(rows(on, vocabulary_, same, same + 1), rows(off, vocabulary_, same, same + 1), vocabulary_),
            1e-3);
}

TEST_P(Compression, TinyContextsStayFinite) {
  const std::int64_t sinks = 4;
  const std::int64_t window = 4;
  for (const std::int64_t prompt : {1, 2, 3, 4, 5, 7, 8, 9, 10}) {
    const Tokens tokens = random_tokens(prompt + 3, vocabulary_, 10);
    const auto policy = tiny_.uniform({false, sinks, window, 0, true}, streaming());
    KvSequence sequence = tiny_.engine.new_sequence(policy);
    Logits found = tiny_.feed(sequence, std::span(tokens).first(static_cast<std::size_t>(prompt)), 512);
    sequence.compress();
    const Logits after = tiny_.feed(sequence, std::span(tokens).subspan(static_cast<std::size_t>(prompt)), 1);
    found.insert(found.end(), after.begin(), after.end());
    EXPECT_LE(worst_row_error(found, tiny_.reference(tokens, *policy, streaming() ? 0 : prompt), vocabulary_),
              kReferenceError)
        << "prompt of " << prompt;
    for (const HeadRows& head : sequence.layer(0)) EXPECT_GE(head.usage().rows, 1);
  }
}

TEST_P(Compression, ALongAnswerStaysBounded) {
  const std::int64_t sinks = 4;
  const std::int64_t window = 8;
  const Tokens tokens = random_tokens(8 + 8 * (sinks + window), vocabulary_, 11);
  KvSequence sequence = tiny_.engine.new_sequence(tiny_.uniform({false, sinks, window, 0, true}, streaming()));
  tiny_.feed(sequence, std::span(tokens).first(8), 8);
  sequence.compress();
  for (const Token& token : std::span(tokens).subspan(8)) {
    tiny_.feed(sequence, {&token, 1}, 1);
    for (std::int64_t l = 0; l < sequence.layer_count(); ++l) {
      for (const HeadRows& head : sequence.layer(l)) ASSERT_LE(head.usage().rows, sinks + 1 + window);
    }
  }
  EXPECT_EQ(sequence.tokens(), static_cast<std::int64_t>(tokens.size()));
}

std::string shape_name(const ::testing::TestParamInfo<std::tuple<std::pair<int, int>, bool>>& shape) {
  const auto& [heads, streaming] = shape.param;
  return "heads" + std::to_string(heads.first) + "of" + std::to_string(heads.second) +
         (streaming ? "streaming" : "exact");
}

// Query and KV heads: GQA groups of 1, 2, 3, 4 and 7. With 6 of 3, 14 of 2 and 28 of 4 a map that divides by the wrong
// number reads another head.
INSTANTIATE_TEST_SUITE_P(Shapes, Compression,
                         ::testing::Combine(::testing::Values(std::pair{6, 6}, std::pair{6, 3}, std::pair{9, 3},
                                                              std::pair{8, 2}, std::pair{28, 4}, std::pair{14, 2}),
                                            ::testing::Bool()),
                         shape_name);

// Attention over equal logits is a mean, so dropping rows into a weighted mean changes nothing (O2). A weight that is
// off by one shows at small N only.
TEST(ZeroKeys, CompressedEqualsUncompressed) {
  TinyOptions options = with_heads(4, 2);
  options.qkv_bias = true;
  TinyGguf gguf(options);
  for (std::int64_t l = 0; l < options.layers; ++l) {
    for (const char* name : {".attn_k.weight", ".attn_k.bias"}) {
      const std::string key = "blk." + std::to_string(l) + name;
      if (gguf.has(key)) std::fill(gguf.tensor(key).values.begin(), gguf.tensor(key).values.end(), 0.0F);
    }
  }
  TinyEngine tiny(gguf);
  const Tokens tokens = random_tokens(200, tiny.vocabulary(), 12);
  KvSequence off = tiny.engine.new_sequence(tiny.engine.full_policy());
  KvSequence on = tiny.engine.new_sequence(tiny.uniform({false, 4, 4, 0, true}, true));
  EXPECT_LE(worst_row_error(tiny.feed(on, tokens, 1), tiny.feed(off, tokens, 1), tiny.vocabulary()), kOrderError);
  KvSequence without = tiny.engine.new_sequence(tiny.uniform({false, 4, 4, 0, false}, true));
  KvSequence again = tiny.engine.new_sequence(tiny.engine.full_policy());
  EXPECT_GE(worst_row_error(tiny.feed(without, tokens, 1), tiny.feed(again, tokens, 1), tiny.vocabulary()), 1e-2);
}

// RoPE turns keys and queries by their positions, so only differences count (O4): a reference whose positions start at
// 777 gives the same logits, compensation token included.
TEST(Shift, LogitsDoNotDependOnWhereTheSequenceStarts) {
  TinyEngine tiny(with_heads(4, 2));
  const auto policy = tiny.mixed({false, 4, 10, 0, true}, true);
  const Tokens tokens = random_tokens(64, tiny.vocabulary(), 13);
  PlainAttentionHook hook(tiny.model->config());
  hook.compress(policy->rules, 0);
  const Logits shifted = run_decoder(*tiny.model, hook, tokens, 777);
  KvSequence sequence = tiny.engine.new_sequence(policy);
  EXPECT_LE(worst_row_error(tiny.feed(sequence, tokens, 9), shifted, tiny.vocabulary()), kReferenceError);
}

// O8: feeding token by token equals feeding the whole text, uncompressed and with streaming compression.
TEST(Incremental, EqualsRunningTheWholeTextEachTime) {
  TinyEngine tiny(with_heads(4, 2));
  const Tokens tokens = random_tokens(40, tiny.vocabulary(), 14);
  for (const auto& policy : {tiny.engine.full_policy(), tiny.mixed({false, 2, 6, 3, true}, true)}) {
    KvSequence sequence = tiny.engine.new_sequence(policy);
    const Logits incremental = tiny.feed(sequence, tokens, 1);
    for (std::size_t n = 1; n <= tokens.size(); n += 3) {
      KvSequence whole = tiny.engine.new_sequence(policy);
      const Logits all = tiny.feed(whole, std::span(tokens).first(n), 512);
      const auto end = static_cast<std::int64_t>(n);
      EXPECT_LE(worst_row_error(rows(all, tiny.vocabulary(), end - 1, end),
                                rows(incremental, tiny.vocabulary(), end - 1, end), tiny.vocabulary()),
                kOrderError);
    }
  }
}

TEST(SlidingLayers, KeepTheirOwnWindowAndAreNeverCompensated) {
  TinyOptions options;
  options.architecture = "gemma3";
  options.layers = 6;
  options.sliding_window = 16;
  TinyEngine tiny(options);
  const auto policy = tiny.uniform({false, 4, 12, 0, true});
  const Tokens tokens = random_tokens(120, tiny.vocabulary(), 15);
  const Logits expected = tiny.reference(tokens, *policy, 70);
  KvSequence sequence = tiny.engine.new_sequence(policy);
  Logits found = tiny.feed(sequence, std::span(tokens).first(70), 32);
  sequence.compress();
  const Logits after = tiny.feed(sequence, std::span(tokens).subspan(70), 5);
  found.insert(found.end(), after.begin(), after.end());
  EXPECT_LE(worst_row_error(found, expected, tiny.vocabulary()), kGeluTableError);
  EXPECT_EQ(sequence.layer(0)[0].usage().rows, 16);
  EXPECT_FALSE(sequence.layer(0)[0].rule().compensate);
  EXPECT_GT(sequence.layer(5)[0].dropped(), 0);
}

}  // namespace
}  // namespace razorkv::test
