// The border of the window: chunks larger than it, what lies just outside, what is left behind.
#include <gtest/gtest.h>

#include <cmath>

#include "engine/engine_fixture.h"

namespace razorkv::test {
namespace {

constexpr double kOrderError = 3e-5;  // see compression_test.cpp

// A window without sinks and compensation that holds the suffix exactly is attention over the suffix alone, however the
// text was cut into batches. RoPE sees distances only; 300 positions cost 300 * 2^-24 = 2e-5 rad of an angle.
TEST(Window, OfOneLayerSeesTheSuffixOnly) {
  TinyOptions options;
  options.layers = 1;
  TinyEngine tiny(options);
  const Tokens prefix = random_tokens(300, tiny.vocabulary(), 1);
  const Tokens suffix = random_tokens(128, tiny.vocabulary(), 2);
  Tokens whole = prefix;
  whole.insert(whole.end(), suffix.begin(), suffix.end());
  KvSequence dense = tiny.engine.new_sequence(tiny.engine.full_policy());
  const Logits alone = tiny.feed(dense, suffix, 128);
  const std::int64_t v = tiny.vocabulary();
  for (const std::int64_t size : {428, 128, 44, 32, 1}) {
    KvSequence sequence = tiny.engine.new_sequence(tiny.uniform({false, 0, 128, 0, false}, true));
    const Logits found = tiny.feed(sequence, whole, size);
    EXPECT_LE(worst_row_error(rows(found, v, 427, 428), rows(alone, v, 127, 128), v), 1e-4) << "batches of " << size;
    EXPECT_GE(worst_row_error(rows(found, v, 426, 427), rows(alone, v, 126, 127), v), 1e-3) << "sees one row more";
  }
}

// A long answer after prompts around multiples of the batch stays right, not only its first tokens.
TEST(Window, DecodingFarBehindAnyPromptLength) {
  TinyEngine tiny{TinyOptions{}};
  const std::int64_t window = 16;
  const std::int64_t batch = 24;
  const std::int64_t v = tiny.vocabulary();
  for (const bool streaming : {false, true}) {
    const auto policy = tiny.mixed({false, 4, window, 0, true}, streaming);
    for (const std::int64_t prompt : {batch - 1, batch, batch + 1, batch * 7 / 5, 2 * batch + 1}) {
      const Tokens tokens = random_tokens(prompt + window + 32, v, static_cast<std::uint32_t>(prompt));
      KvSequence sequence = tiny.engine.new_sequence(policy);
      Logits found = tiny.feed(sequence, std::span(tokens).first(static_cast<std::size_t>(prompt)), batch);
      sequence.compress();
      const Logits after = tiny.feed(sequence, std::span(tokens).subspan(static_cast<std::size_t>(prompt)), 1);
      found.insert(found.end(), after.begin(), after.end());
      EXPECT_LE(worst_row_error(found, tiny.reference(tokens, *policy, streaming ? 0 : prompt), v), kOrderError);
    }
  }
}

// A value row of the first position reaches the last query of the window and not the one behind it.
TEST(Window, CountsTheCurrentRow) {
  TinyOptions options;
  options.layers = 1;
  TinyEngine tiny(options);
  const std::int64_t window = 8;
  const std::int64_t v = tiny.vocabulary();
  const auto policy = tiny.uniform({false, 0, window, 0, false}, true);
  const auto run = [&](Token first) {
    Tokens tokens = random_tokens(window + 3, v, 3);
    tokens.front() = first;
    KvSequence sequence = tiny.engine.new_sequence(policy);
    return tiny.feed(sequence, tokens, 1);
  };
  const Logits one = run(1);
  const Logits two = run(2);
  for (std::int64_t p = 0; p < window + 3; ++p) {
    EXPECT_EQ(rows(one, v, p, p + 1) == rows(two, v, p, p + 1), p >= window) << "position " << p;
  }
}

}  // namespace
}  // namespace razorkv::test
