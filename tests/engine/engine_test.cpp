// Sequences, failures and memory of the engine.
#include "engine/engine.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>

#include "engine/engine_fixture.h"
#include "engine/prefill.h"
#include "razorkv/error.h"

namespace razorkv::test {
namespace {

constexpr double kOrderError = 3e-5;  // see compression_test.cpp

TEST(Sequences, DecodedTogetherEqualSoloRuns) {
  TinyEngine tiny{TinyOptions{}};
  const auto policy = tiny.mixed({false, 2, 8, 0, true});
  std::vector<Tokens> texts;
  std::vector<KvSequence> together;
  std::vector<Logits> solo;
  for (std::uint32_t i = 0; i < 4; ++i) {
    texts.push_back(random_tokens(10 + 17 * static_cast<std::int64_t>(i), tiny.vocabulary(), i));
    KvSequence alone = tiny.engine.new_sequence(policy);
    tiny.feed(alone, std::span(texts.back()).first(5), 5);
    alone.compress();
    together.push_back(alone);
    solo.push_back(tiny.feed(alone, std::span(texts.back()).subspan(5), 512));
  }
  std::vector<BatchItem> items;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    items.push_back({&together[i], std::span(texts[i]).subspan(5), static_cast<std::int64_t>(texts[i].size()) - 5});
  }
  const std::span<const float> found = tiny.engine.decode(items);
  Logits expected;
  for (const Logits& logits : solo) expected.insert(expected.end(), logits.begin(), logits.end());
  EXPECT_LE(worst_row_error({found.begin(), found.end()}, expected, tiny.vocabulary()), kOrderError);
}

TEST(Sequences, CopiesShareAPrefixAndGoOnAlone) {
  TinyEngine tiny{TinyOptions{}};
  const Tokens prefix = random_tokens(70, tiny.vocabulary(), 1);
  const Tokens left = random_tokens(40, tiny.vocabulary(), 2);
  const Tokens right = random_tokens(40, tiny.vocabulary(), 3);
  for (const bool streaming : {false, true}) {
    const auto policy = tiny.mixed({false, 2, 8, 4, true}, streaming);
    const auto alone = [&](const Tokens& tail) {
      KvSequence sequence = tiny.engine.new_sequence(policy);
      tiny.feed(sequence, prefix, 32);
      sequence.compress();
      return tiny.feed(sequence, tail, 1);
    };
    KvSequence base = tiny.engine.new_sequence(policy);
    tiny.feed(base, prefix, 32);
    base.compress();
    const std::size_t live = tiny.engine.pool_stats().live_bytes;
    KvSequence copy = base;
    EXPECT_EQ(tiny.engine.pool_stats().live_bytes, live);
    const Logits l = tiny.feed(base, left, 1);
    const Logits r = tiny.feed(copy, right, 1);
    EXPECT_EQ(l, alone(left));
    EXPECT_EQ(r, alone(right));
  }
}

TEST(Sequences, RollingBackEqualsNeverHavingFed) {
  TinyEngine tiny{TinyOptions{}};
  const auto policy = tiny.mixed({false, 2, 8, 4, true});
  const Tokens document = random_tokens(100, tiny.vocabulary(), 4);
  const Tokens question = random_tokens(30, tiny.vocabulary(), 5);
  KvSequence sequence = tiny.engine.new_sequence(policy);
  tiny.feed(sequence, document, 64);
  sequence.compress();
  const KvSequence snapshot = sequence;
  const Logits first = tiny.feed(sequence, question, 30);
  tiny.feed(sequence, random_tokens(50, tiny.vocabulary(), 6), 1);
  sequence = snapshot;
  EXPECT_EQ(sequence.tokens(), 100);
  EXPECT_EQ(tiny.feed(sequence, question, 30), first);
}

TEST(Sequences, OnePrefillServesSeveralPolicies) {
  TinyEngine tiny{TinyOptions{}};
  const Tokens document = random_tokens(100, tiny.vocabulary(), 14);
  const Tokens question = random_tokens(10, tiny.vocabulary(), 15);
  KvSequence base = tiny.engine.new_sequence(tiny.engine.full_policy());
  tiny.feed(base, document, 64);
  for (const HeadRule& local : {HeadRule{false, 4, 9, 0, true}, HeadRule{false, 0, 20, 3, false}}) {
    const auto policy = tiny.mixed(local);
    KvSequence own = tiny.engine.new_sequence(policy);
    tiny.feed(own, document, 64);
    own.compress();
    KvSequence shared = base.with_policy(policy);
    shared.compress();
    EXPECT_EQ(tiny.feed(shared, question, 1), tiny.feed(own, question, 1));
    EXPECT_THROW(shared.with_policy(policy), InvalidArgument);
  }
  EXPECT_THROW(base.with_policy(tiny.mixed({false, 4, 9, 0, true}, true)), InvalidArgument);
  EXPECT_THROW(base.with_policy(std::make_shared<KvPolicy>()), InvalidArgument);
}

TEST(Threads, GiveTheSameLogits) {
  const TinyGguf gguf{TinyOptions{}};
  const Tokens tokens = random_tokens(44, 96, 12);
  Logits one;
  for (const int threads : {1, 2}) {
    TinyEngine tiny(gguf, exact_settings(threads));
    KvSequence sequence = tiny.engine.new_sequence(tiny.mixed({false, 2, 8, 4, true}));
    Logits found = tiny.feed(sequence, std::span(tokens).first(40), 32);
    sequence.compress();
    const Logits after = tiny.feed(sequence, std::span(tokens).subspan(40), 1);
    found.insert(found.end(), after.begin(), after.end());
    if (threads == 1) one = found;
    EXPECT_LE(worst_row_error(found, one, tiny.vocabulary()), kOrderError) << threads << " threads";
  }
}

TEST(Memory, PoisonedPagesChangeNothing) {
  TinyEngine tiny{TinyOptions{}};
  const Tokens tokens = random_tokens(90, tiny.vocabulary(), 7);
  for (const auto& policy : {tiny.engine.full_policy(), tiny.mixed({false, 2, 8, 4, true})}) {
    const auto run = [&] {
      KvSequence sequence = tiny.engine.new_sequence(policy);
      Logits found = tiny.feed(sequence, std::span(tokens).first(60), 16);
      sequence.compress();
      const Logits after = tiny.feed(sequence, std::span(tokens).subspan(60), 1);
      found.insert(found.end(), after.begin(), after.end());
      return found;
    };
    const Logits clean = run();
    {
      std::vector<PageRef> pages;
      for (int i = 0; i < 16; ++i) {
        pages.push_back(tiny.engine.pool().allocate());
        std::memset(pages.back().data(), 0xFF, tiny.engine.pool().page_bytes());  // NaN in f32 and f16
      }
    }
    const PageRef reused = tiny.engine.pool().allocate();
    float value = 0.0F;
    std::memcpy(&value, reused.data(), sizeof(value));
    ASSERT_TRUE(std::isnan(value)) << "the pool hands out no poisoned page, so this test shows nothing";
    EXPECT_EQ(run(), clean);
  }
}

TEST(Memory, AllocatedBytesFollowTheFormula) {
  TinyEngine tiny{TinyOptions{}};
  const HeadRule local{false, 4, 100, 0, true};
  const auto policy = tiny.mixed(local);
  KvSequence sequence = tiny.engine.new_sequence(policy);
  const std::int64_t n = 1000;
  tiny.feed(sequence, random_tokens(n, tiny.vocabulary(), 8), 512);
  sequence.compress();
  const std::size_t row = 2 * row_bytes(sequence.format().type, sequence.format().width);
  std::size_t rows = 0;
  std::size_t slack = 0;
  for (std::int64_t l = 0; l < sequence.layer_count(); ++l) {
    for (const HeadRows& head : sequence.layer(l)) {
      rows += static_cast<std::size_t>(head.rule().everything ? n : local.sinks + 1 + local.window_floor);
      slack += 2 * sequence.format().page_bytes();
    }
  }
  const KvUsage usage = sequence.usage();
  EXPECT_EQ(usage.tokens, n);
  EXPECT_EQ(usage.rows, static_cast<std::int64_t>(rows));
  EXPECT_GE(usage.allocated_bytes, rows * row);
  EXPECT_LE(usage.allocated_bytes, rows * row + slack);
  EXPECT_EQ(usage.uncompressed_bytes, static_cast<std::size_t>(n) * 4 * row);
  KvSequence full = tiny.engine.new_sequence(tiny.uniform(HeadRule::all()));
  KvSequence off = tiny.engine.new_sequence(tiny.engine.full_policy());
  tiny.feed(full, random_tokens(512, tiny.vocabulary(), 9), 512);
  tiny.feed(off, random_tokens(512, tiny.vocabulary(), 9), 512);
  EXPECT_EQ(full.usage().allocated_bytes, off.usage().allocated_bytes);
}

TEST(Failures, LeaveTheSequenceAsItWas) {
  TinyOptions options;
  EngineSettings settings = exact_settings();
  settings.kv_budget_bytes = 16 * RowFormat{RowType::f32, options.head_width}.page_bytes();
  TinyEngine tiny(options, settings);
  const Tokens tokens = random_tokens(400, tiny.vocabulary(), 10);
  KvSequence sequence = tiny.engine.new_sequence(tiny.engine.full_policy());
  tiny.feed(sequence, std::span(tokens).first(100), 100);
  const std::size_t live = tiny.engine.pool_stats().live_bytes;

  EXPECT_THROW(tiny.feed(sequence, std::span(tokens).subspan(100), 300), OutOfBudget);
  const Token outside = static_cast<Token>(tiny.vocabulary());
  EXPECT_THROW(tiny.feed(sequence, {&outside, 1}, 1), InvalidArgument);
  const Token negative = -1;
  EXPECT_THROW(tiny.feed(sequence, {&negative, 1}, 1), InvalidArgument);
  EXPECT_THROW(tiny.engine.decode({}), InvalidArgument);
  const BatchItem item{&sequence, std::span(tokens).first(1), 1};
  const std::vector<BatchItem> twice{item, item};
  EXPECT_THROW(tiny.engine.decode(twice), InvalidArgument);
  std::atomic<bool> cancel{true};
  tiny.engine.set_cancel_flag(&cancel);
  EXPECT_THROW(tiny.feed(sequence, std::span(tokens).subspan(100, 20), 20), Cancelled);
  tiny.engine.set_cancel_flag(nullptr);

  EXPECT_EQ(sequence.tokens(), 100);
  EXPECT_EQ(tiny.engine.pool_stats().live_bytes, live);
  TinyEngine fresh(options, exact_settings());
  KvSequence same = fresh.engine.new_sequence(fresh.engine.full_policy());
  fresh.feed(same, std::span(tokens).first(100), 100);
  EXPECT_EQ(tiny.feed(sequence, std::span(tokens).subspan(100, 20), 1),
            fresh.feed(same, std::span(tokens).subspan(100, 20), 1));
}

TEST(Prefill, CancelledByProgressRollsBack) {
  TinyEngine tiny{TinyOptions{}};
  KvSequence sequence = tiny.engine.new_sequence(tiny.engine.full_policy());
  const Tokens tokens = random_tokens(100, tiny.vocabulary(), 11);
  std::vector<std::int64_t> seen;
  EXPECT_THROW(prefill(tiny.engine, sequence, tokens, 32,
                       [&](std::int64_t done, std::int64_t total) {
                         EXPECT_EQ(total, 100);
                         seen.push_back(done);
                         return done < 64;
                       }),
               Cancelled);
  EXPECT_EQ(seen, (std::vector<std::int64_t>{32, 64}));
  EXPECT_EQ(sequence.tokens(), 0);
  EXPECT_EQ(tiny.engine.pool_stats().live_bytes, 0U);
}

TEST(Policies, OfAnotherShapeAreRefused) {
  TinyEngine tiny{TinyOptions{}};
  KvPolicy layers;
  EXPECT_THROW(tiny.engine.new_sequence(std::make_shared<KvPolicy>(layers)), InvalidArgument);
  KvPolicy heads = *tiny.engine.full_policy();
  heads.rules[0].push_back(HeadRule::all());
  EXPECT_THROW(tiny.engine.new_sequence(std::make_shared<KvPolicy>(heads)), InvalidArgument);
}

}  // namespace
}  // namespace razorkv::test
