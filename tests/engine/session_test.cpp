// The public session: feeding, failures, snapshots, statistics; a warm session equals a fresh one (oracle O7).
#include "razorkv/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "engine/session_fixture.h"
#include "razorkv/error.h"
#include "support/resident_memory.h"

namespace razorkv::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class SessionTest : public ::testing::Test {
 protected:
  const Model model_ = tiny_public_model();
};

TEST_F(SessionTest, LogitsFollowTheLastTokenHoweverItWasFed) {
  const std::vector<Token> tokens = text(50, 1);
  Session whole(model_, one_thread(KvType::f32, 16));
  EXPECT_TRUE(whole.logits().empty());
  whole.feed(tokens);
  EXPECT_EQ(whole.logits().size(), static_cast<std::size_t>(kTinyVocabulary));
  Session parts(model_, one_thread(KvType::f32, 16));
  parts.feed(std::span(tokens).first(32));
  parts.feed(std::span(tokens).subspan(32));
  EXPECT_EQ(logits(parts), logits(whole));  // the same micro-batches
  Session single(model_, one_thread(KvType::f32));
  for (const Token& token : tokens) single.feed({&token, 1});
  EXPECT_LE(worst_row_error(logits(single), logits(whole), kTinyVocabulary), 3e-5);  // see compression_test.cpp
}

TEST_F(SessionTest, FailuresLeaveItAsItWas) {
  SessionOptions options = one_thread(KvType::f32, 16);
  options.context = 64;
  Session session(model_, options);
  session.feed(text(50, 1));
  const std::vector<float> before = logits(session);
  const auto expect_unchanged = [&] {
    EXPECT_EQ(session.statistics().tokens, 50);
    EXPECT_EQ(logits(session), before);
  };
  try {
    session.feed(text(15, 2));
    FAIL() << "one token too many was taken";
  } catch (const ContextFull& full) {
    EXPECT_THAT(full.what(), AllOf(HasSubstr("64"), HasSubstr("50"), HasSubstr("15")));
  }
  expect_unchanged();
  EXPECT_THROW(session.feed({}), InvalidArgument);
  const std::vector<Token> outside{1, kTinyVocabulary};
  EXPECT_THROW(session.feed(outside), InvalidArgument);
  expect_unchanged();
  session.feed(text(14, 2));
  EXPECT_EQ(session.statistics().tokens, 64);
  const Token one = 5;
  EXPECT_THROW(session.feed({&one, 1}), ContextFull);
}

TEST_F(SessionTest, ProgressAndCancelStopBetweenMicroBatches) {
  Session session(model_, one_thread(KvType::f32, 16));
  session.feed(text(10, 1));
  const std::vector<float> before = logits(session);
  std::vector<std::int64_t> seen;
  const std::vector<Token> more = text(50, 2);
  EXPECT_THROW(session.feed(more,
                            [&](std::int64_t done, std::int64_t total) {
                              EXPECT_EQ(total, 50);
                              seen.push_back(done);
                              return done < 32;
                            }),
               Cancelled);
  EXPECT_EQ(seen, (std::vector<std::int64_t>{16, 32}));
  EXPECT_EQ(logits(session), before);

  EXPECT_THROW(session.feed(more,
                            [&](std::int64_t done, std::int64_t) {
                              if (done == 16) session.cancel_flag() = true;
                              return true;
                            }),
               Cancelled);
  EXPECT_EQ(session.statistics().tokens, 10);
  session.cancel_flag() = false;
  session.feed(more);
  Session same(model_, one_thread(KvType::f32, 16));
  same.feed(text(10, 1));
  same.feed(more);
  EXPECT_EQ(logits(session), logits(same));
}

TEST_F(SessionTest, RefusesOptionsAndPoliciesThatDoNotFit) {
  const auto with = [](auto edit) {
    SessionOptions options = one_thread();
    edit(options);
    return options;
  };
  EXPECT_THROW(Session(model_, with([](SessionOptions& o) { o.context = -1; })), InvalidArgument);
  EXPECT_THROW(Session(model_, with([](SessionOptions& o) { o.micro_batch = 0; })), InvalidArgument);
  EXPECT_THROW(Session(model_, with([](SessionOptions& o) { o.threads = 1 << 20; })), InvalidArgument);
  TinyOptions deeper;
  deeper.layers = 3;
  EXPECT_THROW(Session(tiny_public_model(deeper), one_thread(), Policy::full(model_)), InvalidArgument);
  const Session filled(model_, with([](SessionOptions& o) { o.threads = 0; }));
  EXPECT_EQ(filled.options().context, 1024);
  EXPECT_GE(filled.options().threads, 1);
  EXPECT_EQ(filled.options().threads_batch, filled.options().threads);
}

TEST_F(SessionTest, BudgetIsHard) {
  SessionOptions options = one_thread();
  options.kv_budget_bytes = 64 << 10;
  Session session(model_, options);
  session.feed(text(20, 1));
  const std::vector<float> before = logits(session);
  EXPECT_THROW(session.feed(text(900, 2)), OutOfBudget);
  EXPECT_EQ(logits(session), before);
  EXPECT_LE(session.statistics().kv_peak_bytes, options.kv_budget_bytes);
}

TEST_F(SessionTest, RestoringEqualsNeverHavingFed) {
  for (const PrefillMode mode : {PrefillMode::exact, PrefillMode::streaming}) {
    Session session(model_, one_thread(), razor(model_, 20, mode));
    const Snapshot empty = session.snapshot();
    session.feed(text(100, 1));
    const Snapshot uncompressed = session.snapshot();
    session.compress();
    const std::vector<float> before = logits(session);
    const Snapshot document = session.snapshot();
    EXPECT_EQ(document.tokens(), 100);
    const std::vector<float> first = ask(session, text(30, 2));
    ask(session, text(60, 3));
    session.restore(document);
    EXPECT_EQ(logits(session), before);
    EXPECT_EQ(session.statistics().tokens, 100);
    EXPECT_EQ(ask(session, text(30, 2)), first);
    session.restore(uncompressed);
    EXPECT_EQ(session.compressed(), mode == PrefillMode::streaming);
    session.restore(empty);
    EXPECT_EQ(session.statistics().tokens, 0);
    EXPECT_TRUE(session.logits().empty());
    session.feed(text(100, 1));
    EXPECT_EQ(logits(session), before);
  }
}

TEST_F(SessionTest, SnapshotsBelongToTheirSession) {
  std::optional<Snapshot> old;
  {
    Session gone(model_, one_thread());
    gone.feed(text(40, 1));
    old = gone.snapshot();
  }
  Session session(model_, one_thread());
  session.feed(text(10, 2));
  EXPECT_THROW(session.restore(*old), InvalidArgument);
  EXPECT_EQ(old->tokens(), 40);
  const Snapshot own = session.snapshot();
  Session moved = std::move(session);
  moved.feed(text(10, 3));
  moved.restore(own);
  EXPECT_EQ(moved.statistics().tokens, 10);
}

TEST_F(SessionTest, ClearForgetsEverything) {
  Session session(model_, one_thread(), razor(model_, 20));
  const Session fresh(model_, one_thread(), razor(model_, 20));
  session.feed(text(100, 1));
  session.compress();
  session.clear();
  EXPECT_EQ(session.statistics().tokens, 0);
  EXPECT_EQ(session.statistics().kv_bytes, fresh.statistics().kv_bytes);
  EXPECT_FALSE(session.compressed());
  EXPECT_TRUE(session.logits().empty());
  Session other(model_, one_thread(), razor(model_, 20));
  EXPECT_EQ(ask(session, text(50, 2)), ask(other, text(50, 2)));
}

TEST_F(SessionTest, StatisticsCountTokensAndBytes) {
  Session session(model_, one_thread(), razor(model_, 40));
  session.feed(text(500, 1));
  const Token one = 7;
  session.feed({&one, 1});
  const SessionStatistics before = session.statistics();
  EXPECT_EQ(before.tokens, 501);
  EXPECT_EQ(before.prefill_tokens, 500);
  EXPECT_EQ(before.decode_tokens, 1);
  EXPECT_GT(before.prefill_seconds, 0.0);
  EXPECT_GT(before.decode_seconds, 0.0);
  EXPECT_GT(before.compute_bytes, 0U);
  const std::size_t row = 2 * 16 * 2;  // K and V of 16 halves
  EXPECT_EQ(before.kv_uncompressed_bytes, 501 * 4 * row);
  EXPECT_GE(before.kv_row_bytes, before.kv_uncompressed_bytes);
  EXPECT_GE(before.kv_bytes, before.kv_row_bytes);

  session.compress();
  const SessionStatistics after = session.statistics();
  EXPECT_EQ(after.tokens, 501);
  EXPECT_EQ(after.kv_uncompressed_bytes, before.kv_uncompressed_bytes);
  // Two heads keep 501 rows; two keep 4 + 40 and a compensation row in float32.
  EXPECT_EQ(after.kv_row_bytes, (2 * 501 + 2 * (44 + 2)) * row);
  EXPECT_GE(after.kv_bytes, after.kv_row_bytes);
  EXPECT_LT(after.kv_bytes, before.kv_bytes * 3 / 4);
  EXPECT_GE(after.kv_peak_bytes, before.kv_bytes * 9 / 10);
  EXPECT_TRUE(session.compressed());
}

TEST_F(SessionTest, OneTokenPromptsAreCompressedOnTime) {
  Session session(model_, one_thread(KvType::f32), razor(model_, 8, PrefillMode::exact, "none"));
  const std::size_t row = 2 * 16 * 4;
  for (std::int64_t n = 1; n <= 4 + 8 + 6; ++n) {
    const Token next = static_cast<Token>(n);
    session.feed({&next, 1});
    if (n == 1) session.compress();
    const SessionStatistics now = session.statistics();
    EXPECT_EQ(now.decode_tokens, n);
    EXPECT_EQ(now.prefill_tokens, 0);
    EXPECT_EQ(now.kv_row_bytes, 4 * static_cast<std::size_t>(std::min<std::int64_t>(n, 4 + 1 + 8)) * row) << n;
  }
}

TEST_F(SessionTest, ResidentMemoryFallsAfterCompressing) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the shadow memory of the thread sanitizer stays resident";
#endif
  TinyOptions wide;
  wide.heads = wide.kv_heads = 16;
  wide.head_width = 64;
  const Model model = tiny_public_model(wide);
  Session session(model, one_thread(KvType::f32), razor(model, 64, PrefillMode::exact, "none"));
  const std::size_t start = resident_bytes();
  session.feed(text(1000, 1));
  const std::size_t full = resident_bytes();
  const std::size_t kv = 1000 * 2 * 16 * 2 * 64 * 4;
  EXPECT_GE(full, start + kv);
  session.compress();
  EXPECT_LE(resident_bytes(), full - kv * 3 / 4);
}

// O7: what a session answered before leaves no trace.
TEST_F(SessionTest, WarmEqualsFresh) {
  for (const PrefillMode mode : {PrefillMode::exact, PrefillMode::streaming}) {
    const Policy policy = razor(model_, 20, mode);
    const auto fresh = [&] {
      Session session(model_, one_thread(), policy);
      session.feed(text(150, 1));
      session.compress();
      return session;
    };
    Session warm = fresh();
    const Snapshot document = warm.snapshot();
    ask(warm, text(40, 2), 20);  // another one's question
    warm.restore(document);
    std::vector<std::vector<float>> turns;
    for (const std::uint32_t seed : {3U, 4U, 5U}) turns.push_back(ask(warm, text(12 * seed, seed)));
    const Snapshot third = warm.snapshot();
    warm.restore(document);
    const std::vector<float> other = ask(warm, text(9, 6));
    warm.restore(third);
    turns.push_back(ask(warm, text(7, 7)));

    Session cold = fresh();
    for (const std::uint32_t seed : {3U, 4U, 5U}) EXPECT_EQ(ask(cold, text(12 * seed, seed)), turns[seed - 3]);
    EXPECT_EQ(ask(cold, text(7, 7)), turns[3]);
    Session alone = fresh();
    EXPECT_EQ(ask(alone, text(9, 6)), other);
  }
}

// In streaming mode turns also equal one prompt of all the text.
TEST_F(SessionTest, StreamingTurnsEqualOnePrompt) {
  const Policy policy = razor(model_, 20, PrefillMode::streaming);
  Session turns(model_, one_thread(KvType::f32), policy);
  turns.feed(text(100, 1));
  turns.compress();
  turns.feed(text(60, 2));
  std::vector<Token> all = text(100, 1);
  const std::vector<Token> second = text(60, 2);
  all.insert(all.end(), second.begin(), second.end());
  Session prompt(model_, one_thread(KvType::f32), policy);
  prompt.feed(all);
  EXPECT_LE(worst_row_error(logits(turns), logits(prompt), kTinyVocabulary), 3e-5);
}

}  // namespace
}  // namespace razorkv::test
