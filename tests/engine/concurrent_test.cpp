// Several conversations at once: in one batch, and in sessions on threads of their own.
#include <gtest/gtest.h>

#include <thread>

#include "engine/engine_fixture.h"
#include "engine/session_fixture.h"

namespace razorkv::test {
namespace {

// Batching turns nothing off: each sequence holds what it holds alone, and the pool holds their sum.
TEST(Batched, EachIsCompressedAsWhenAlone) {
  TinyEngine tiny{TinyOptions{}};
  const auto policy = tiny.mixed({false, 4, 12, 0, true}, true);
  const auto tokens = [&](std::size_t i) {
    return random_tokens(100 + 60 * static_cast<std::int64_t>(i), tiny.vocabulary(), static_cast<std::uint32_t>(i));
  };
  for (const std::size_t count : {1U, 2U, 4U}) {
    std::vector<KvSequence> sequences;
    std::vector<Tokens> texts;
    std::vector<BatchItem> items;
    for (std::size_t i = 0; i < count; ++i) {
      sequences.push_back(tiny.engine.new_sequence(policy));
      texts.push_back(tokens(i));
    }
    for (std::size_t i = 0; i < count; ++i) items.push_back({&sequences[i], texts[i], 1});
    tiny.engine.decode(items);
    std::size_t paged = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const KvUsage together = sequences[i].usage();
      for (std::int64_t l = 0; l < sequences[i].layer_count(); ++l) {
        for (const HeadRows& head : sequences[i].layer(l)) {
          const auto n = static_cast<std::int64_t>(texts[i].size());
          EXPECT_EQ(head.usage().rows, head.rule().everything ? n : 4 + 1 + 12);
          EXPECT_EQ(head.dropped(), head.rule().everything ? 0 : n - 4 - 12);
        }
      }
      TinyEngine own{TinyOptions{}};
      KvSequence alone = own.engine.new_sequence(policy);
      own.feed(alone, texts[i], 1000);
      EXPECT_EQ(together.rows, alone.usage().rows);
      EXPECT_EQ(together.allocated_bytes, alone.usage().allocated_bytes);
      paged += own.engine.pool_stats().live_bytes;
    }
    EXPECT_EQ(tiny.engine.pool_stats().live_bytes, paged);
  }
}

TEST(Concurrent, SessionsOfOneModelAnswerAsWhenAlone) {
  const Model model = tiny_public_model();
  const auto run = [&](std::uint32_t i) {
    Session session(model, one_thread(), i % 2 == 0 ? Policy::full(model) : razor(model, 10));
    session.feed(text(3 + 7 * i, i));
    session.compress();
    return ask(session, text(4, 100 + i), 8);
  };
  constexpr std::uint32_t kSessions = 16;
  std::vector<std::vector<float>> together(kSessions);
  std::vector<std::thread> threads;
  for (std::uint32_t i = 0; i < kSessions; ++i) {
    threads.emplace_back([&, i] { together[i] = run(i); });
  }
  for (std::thread& thread : threads) thread.join();
  for (std::uint32_t i = 0; i < kSessions; ++i) EXPECT_EQ(together[i], run(i)) << "session " << i;
}

}  // namespace
}  // namespace razorkv::test
