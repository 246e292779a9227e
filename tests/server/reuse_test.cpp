// Reuse of states: the same requests give the same answers as in a fresh process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "server/scheduler_fixture.h"

namespace razorkv::test {
namespace {

class ReuseTest : public SchedulerTest {
 protected:
  Result ask(Scheduler& running, const std::vector<Token>& prompt, bool conversation, bool reuse = true,
             std::int64_t count = 12) const {
    GenerationRequest request = greedy(prompt, count);
    request.conversation = conversation;
    request.reuse = reuse;
    return collect(*running.submit(std::move(request)));
  }
  static std::vector<Token> joined(std::vector<Token> a, const std::vector<Token>& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
  }
};

TEST_F(ReuseTest, ALaterTurnGoesOnFromTheEndOfTheAnswer) {
  for (const std::int64_t length : {10, 60}) {  // without and with compression
    const auto warm = scheduler();
    const std::vector<Token> first = text(length, 1);
    const Answer answer = ask(*warm, first, true).choices[0];
    const std::vector<Token> second = joined(joined(first, answer.tokens), text(9, 2));
    const Result next = ask(*warm, second, true);
    EXPECT_EQ(next.summary.cached_tokens, length + 11);  // the answer's last token had not been fed
    EXPECT_EQ(next.summary.prefilled_tokens, 10);
    const auto fresh = scheduler();
    EXPECT_EQ(ask(*fresh, first, true).choices[0].tokens, answer.tokens);
    const Result replayed = ask(*fresh, second, true);
    EXPECT_EQ(replayed.choices[0].tokens, next.choices[0].tokens);
    EXPECT_EQ(replayed.choices[0].logprobs, next.choices[0].logprobs);
    // An edited answer: only the prompt of the first turn is shared.
    const std::vector<Token> edited = joined(joined(first, text(7, 3)), text(9, 2));
    EXPECT_EQ(ask(*warm, edited, true).summary.cached_tokens, length);
  }
}

TEST_F(ReuseTest, TheSamePromptAgainAndAShorterOne) {
  const auto warm = scheduler();
  const std::vector<Token> shorter = text(40, 1);
  const std::vector<Token> longer = joined(shorter, text(30, 2));
  const Result cold_short = ask(*scheduler(), shorter, false);
  const Result cold_long = ask(*warm, longer, false);
  const Result again = ask(*warm, longer, false);
  EXPECT_EQ(again.summary.cached_tokens, 70);
  EXPECT_EQ(again.choices[0].logprobs, cold_long.choices[0].logprobs);
  const Result after = ask(*warm, shorter, false);
  EXPECT_EQ(after.summary.cached_tokens, 0);
  EXPECT_EQ(after.choices[0].tokens, cold_short.choices[0].tokens);
  EXPECT_EQ(after.choices[0].logprobs, cold_short.choices[0].logprobs);
}

TEST_F(ReuseTest, WhatAnotherUserWroteHasNoInfluence) {
  const std::vector<Token> shared = text(40, 1);
  const std::vector<Token> mine = joined(shared, text(20, 3));
  const Result cold = ask(*scheduler(), mine, false);
  for (const bool conversation : {false, true}) {
    const auto warm = scheduler();
    ask(*warm, joined(shared, text(25, 2)), conversation);  // a secret behind the shared text, and compressed
    ask(*warm, shared, conversation);
    const Result result = ask(*warm, mine, false);
    EXPECT_EQ(result.summary.cached_tokens, 0);  // the shared text's state has lost rows that the longer prompt sees
    EXPECT_EQ(result.choices[0].logprobs, cold.choices[0].logprobs);
  }
}

TEST_F(ReuseTest, AnExactStateServesEveryLongerPrompt) {
  const auto warm = scheduler(settings(), razor(model_, 200));
  const std::vector<Token> shared = text(48, 1);
  const std::vector<Token> mine = joined(shared, text(30, 3));
  const Result cold = ask(*scheduler(settings(), razor(model_, 200)), mine, false);
  ask(*warm, shared, true);
  const Result result = ask(*warm, mine, false);
  EXPECT_EQ(result.summary.cached_tokens, 48);
  EXPECT_EQ(result.choices[0].tokens, cold.choices[0].tokens);
}

TEST_F(ReuseTest, CanBeSwitchedOffPerRequestAndForAll) {
  const auto warm = scheduler();
  const std::vector<Token> prompt = text(40, 1);
  const Result first = ask(*warm, prompt, false, false);
  EXPECT_EQ(settled(*warm).checkpoints, 0U);
  ask(*warm, prompt, false);
  EXPECT_EQ(ask(*warm, prompt, false, false).summary.cached_tokens, 0);
  SchedulerSettings none = settings();
  none.cache_bytes = 0;
  const auto off = scheduler(none, razor(model_, 8));
  ask(*off, prompt, false);
  EXPECT_EQ(ask(*off, prompt, false).summary.cached_tokens, 0);
  EXPECT_EQ(settled(*off).pool.live_bytes, 0U);
}

TEST_F(ReuseTest, TheLeastRecentlyUsedGoesFirst) {
  SchedulerSettings wanted = settings();
  wanted.cache_bytes = 1U << 20U;
  const auto warm = scheduler(wanted, Policy::full(model_));
  const std::vector<Token> kept = text(100, 1);
  ask(*warm, kept, false);
  for (std::uint32_t i = 0; i < 40; ++i) {
    ask(*warm, text(100, 10 + i), false);
    EXPECT_EQ(ask(*warm, kept, false).summary.cached_tokens, 100) << i;
    EXPECT_LE(settled(*warm).pool.live_bytes, wanted.cache_bytes);
  }
  EXPECT_EQ(ask(*warm, text(100, 10), false).summary.cached_tokens, 0);
}

TEST_F(ReuseTest, AStopStringLeavesNothingThatIsTakenForText) {
  const auto warm = scheduler();
  const std::vector<Token> prompt = text(40, 4);
  const Answer whole = ask(*scheduler(), prompt, true).choices[0];
  GenerationRequest stopped = greedy(prompt, 12);
  stopped.conversation = true;
  const auto letter = std::find_if(whole.text.begin(), whole.text.end(), [](char c) { return c > ' '; });
  ASSERT_NE(letter, whole.text.end());
  stopped.stops = {std::string(1, *letter)};
  collect(*warm->submit(std::move(stopped)));
  EXPECT_EQ(settled(*warm).checkpoints, 1U);  // the prompt's
  EXPECT_EQ(ask(*warm, prompt, true).choices[0].logprobs, whole.logprobs);
}

TEST_F(ReuseTest, AStateThatWasAskedForIsAStart) {
  const auto running = scheduler();
  GenerationRequest read;
  read.prompt = text(100, 1);
  read.base = "doc";
  read.reuse = false;
  const auto state = collect(*running->submit(std::move(read)), 0).summary.state;
  ASSERT_NE(state, nullptr);
  EXPECT_FALSE(state->exact());
  const std::vector<Token> question = text(12, 2);
  std::vector<std::vector<Token>> answers;
  for (int i = 0; i < 2; ++i) {
    GenerationRequest ask = greedy(joined(state->tokens, question), 10);
    ask.start = state;
    ask.base = "doc";
    ask.conversation = true;
    const Result result = collect(*running->submit(std::move(ask)));
    EXPECT_EQ(result.summary.cached_tokens, i == 0 ? 100 : 112);
    answers.push_back(result.choices[0].tokens);
  }
  EXPECT_EQ(answers[0], answers[1]);
  Session session(model_, one_thread(KvType::f32, 16), razor(model_, 8));
  session.feed(text(100, 1));
  session.compress();
  session.feed(question);
  const auto best = std::max_element(session.logits().begin(), session.logits().end()) - session.logits().begin();
  EXPECT_EQ(answers[0].front(), best);
  EXPECT_EQ(settled(*running).checkpoints, 2U);
  running->forget("doc");
  EXPECT_EQ(settled(*running).checkpoints, 0U);
}

}  // namespace
}  // namespace razorkv::test
