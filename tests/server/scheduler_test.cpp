// Continuous batching: answers equal to those of a request alone, fairness, limits, cancellation, failures.
#include "server/scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "base/utf8.h"
#include "razorkv/error.h"
#include "server/scheduler_fixture.h"

namespace razorkv::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

/// What a session gives: prompt, compression, greedy tokens.
std::vector<Token> session_answer(const Model& model, const Policy& policy, const std::vector<Token>& prompt,
                                  int count) {
  Session session(model, one_thread(KvType::f32, 16), policy);
  session.feed(prompt);
  session.compress();
  std::vector<Token> out;
  while (std::ssize(out) < count) {
    std::vector<float> now = logits(session);
    for (Token token = 0; token < kTinyVocabulary; ++token) {
      if (model.ends_generation(token)) now[static_cast<std::size_t>(token)] = -1e30F;
    }
    out.push_back(static_cast<Token>(std::max_element(now.begin(), now.end()) - now.begin()));
    session.feed({&out.back(), 1});
  }
  return out;
}

TEST_F(SchedulerTest, OneRequestEqualsASession) {
  for (const Policy& policy : {razor(model_, 8), razor(model_, 8, PrefillMode::streaming), Policy::full(model_)}) {
    const auto running = scheduler(settings(), policy);
    for (const std::int64_t length : {1, 3, 12, 13, 40, 100}) {
      const std::vector<Token> prompt = text(length, 7);
      const Result result = collect(*running->submit(greedy(prompt, 30)));
      EXPECT_EQ(result.choices[0].tokens, session_answer(model_, policy, prompt, 30)) << policy.name() << length;
      EXPECT_EQ(result.choices[0].finish, FinishReason::length);
      EXPECT_EQ(result.summary.generated_tokens, 30);
      EXPECT_EQ(result.summary.prompt_tokens, length);
    }
  }
}

TEST_F(SchedulerTest, ManyAtOnceEachAsAlone) {
  const auto running = scheduler();
  std::vector<std::vector<Token>> prompts;
  std::vector<Result> alone;
  for (std::uint32_t i = 0; i < 16; ++i) {
    prompts.push_back(text(3 + 5 * i, 100 + i));
    GenerationRequest request = greedy(prompts.back(), 10 + i);
    request.reuse = false;
    alone.push_back(collect(*running->submit(std::move(request))));
  }
  for (int round = 0; round < 3; ++round) {
    std::vector<std::shared_ptr<Generation>> together;
    for (std::uint32_t i = 0; i < 16; ++i) together.push_back(running->submit(greedy(prompts[i], 10 + i)));
    for (std::size_t i = 0; i < together.size(); ++i) {
      const Result result = collect(*together[i]);
      EXPECT_EQ(result.choices[0].tokens, alone[i].choices[0].tokens) << i;
      ASSERT_EQ(result.choices[0].logprobs.size(), alone[i].choices[0].logprobs.size());
      for (std::size_t t = 0; t < result.choices[0].logprobs.size(); ++t) {
        EXPECT_NEAR(result.choices[0].logprobs[t], alone[i].choices[0].logprobs[t], 1e-3);
      }
      // Compressed when batched as when alone.
      EXPECT_EQ(result.summary.kv.rows, alone[i].summary.kv.rows);
    }
  }
}

TEST_F(SchedulerTest, StreamsGoOnWhileALongPromptIsRead) {
  const auto running = scheduler();
  const auto stream = running->submit(greedy(text(5, 1), 900));
  GenerationDelta delta;
  ASSERT_NE(stream->next(delta, std::chrono::minutes(1)), Generation::Wait::timeout);
  const auto reading = running->submit(greedy(text(800, 2), 1));
  const Result read = collect(*reading);
  EXPECT_EQ(read.summary.prefilled_tokens, 800);
  // 50 micro-batches, a decode step after each.
  std::size_t seen = 0;
  for (;;) {
    GenerationDelta next;
    if (stream->next(next, std::chrono::milliseconds(0)) != Generation::Wait::delta) break;
    ++seen;
  }
  EXPECT_GE(seen, 40U);
  stream->cancel();
  EXPECT_THROW(collect(*stream), Cancelled);
}

TEST_F(SchedulerTest, ChoicesShareThePromptAndDiffer) {
  const auto running = scheduler();
  GenerationRequest request = greedy(text(40, 3), 20);
  SamplingParams params;
  params.temperature = 2.0F;
  params.seed = 5;
  request.samplers.emplace_back(model_.impl()->vocabulary, params);
  params.seed = 6;
  request.samplers.emplace_back(model_.impl()->vocabulary, params);
  const Result result = collect(*running->submit(std::move(request)), 3);
  EXPECT_EQ(result.summary.prefilled_tokens, 40);
  EXPECT_EQ(result.choices[0].tokens, collect(*running->submit(greedy(text(40, 3), 20))).choices[0].tokens);
  EXPECT_NE(result.choices[1].tokens, result.choices[2].tokens);
  GenerationRequest five = greedy(text(4, 3), 2);
  while (five.samplers.size() < 5) five.samplers.push_back(five.samplers.front().clone());
  EXPECT_THROW(running->submit(std::move(five)), InvalidArgument);
}

TEST_F(SchedulerTest, EndsAtTheContextAndAtStopStrings) {
  SchedulerSettings small = settings();
  small.context = 64;
  const auto running = scheduler(small, razor(model_, 8));
  EXPECT_EQ(collect(*running->submit(greedy(text(60, 1), 0))).summary.generated_tokens, 5);
  EXPECT_EQ(collect(*running->submit(greedy(text(64, 1), 1000))).summary.generated_tokens, 1);
  for (const std::int64_t length : {65, 128, 200}) {
    try {
      running->submit(greedy(text(length, 1), 5));
      FAIL();
    } catch (const ContextFull& full) {
      EXPECT_THAT(full.what(), AllOf(HasSubstr(std::to_string(length)), HasSubstr("64")));
    }
  }
  EXPECT_THROW(running->submit(greedy({}, 5)), InvalidArgument);

  const std::string whole = collect(*running->submit(greedy(text(20, 9), 12))).choices[0].text;
  ASSERT_GE(whole.size(), 6U);
  for (std::size_t cut = 0; cut + 2 <= whole.size(); ++cut) {
    const std::string stop = whole.substr(cut, 2);
    if (whole.find(stop) != cut || !is_valid_utf8(stop)) continue;
    GenerationRequest request = greedy(text(20, 9), 12);
    request.stops = {stop};
    const Answer answer = collect(*running->submit(std::move(request))).choices[0];
    EXPECT_EQ(answer.text, whole.substr(0, cut));
    EXPECT_EQ(answer.finish, FinishReason::stop);
    std::string of_tokens;
    for (const Token token : answer.tokens) of_tokens += model_.impl()->vocabulary->piece(token);
    EXPECT_EQ(of_tokens.find(stop), std::string::npos);  // log-probabilities tell no more than the text
  }
  GenerationRequest tail = greedy(text(20, 9), 12);
  tail.stops = {whole.substr(whole.size() - 2) + "never"};
  if (is_valid_utf8(tail.stops[0])) {
    EXPECT_EQ(collect(*running->submit(std::move(tail))).choices[0].text, whole);
  }
}

TEST_F(SchedulerTest, CancelledAndLateRequestsFreeTheirPlace) {
  SchedulerSettings one = settings();
  one.parallel = 1;
  one.queue = 2;
  one.context = 1 << 20;
  const auto running = scheduler(one, razor(model_, 8));
  const auto endless = running->submit(greedy(text(5, 1), 0));
  GenerationDelta delta;
  ASSERT_NE(endless->next(delta, std::chrono::minutes(1)), Generation::Wait::timeout);
  const auto queued = running->submit(greedy(text(5, 2), 3));
  GenerationRequest late = greedy(text(5, 2), 3);
  late.deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(500);
  const auto timed = running->submit(std::move(late));
  EXPECT_THROW(running->submit(greedy(text(5, 3), 3)), server::Overloaded);
  EXPECT_THROW(collect(*timed), server::TimedOut);
  const auto leaving = running->submit(greedy(text(5, 4), 3));
  leaving->cancel();
  EXPECT_THROW(collect(*leaving), Cancelled);
  EXPECT_FALSE(endless->cancelled());
  EXPECT_EQ(settled(*running).running, 1U);  // a leaving client of the queue does not disturb the running one
  endless->cancel();
  EXPECT_THROW(collect(*endless), Cancelled);
  EXPECT_EQ(collect(*queued).summary.generated_tokens, 3);
  EXPECT_EQ(settled(*running).rejected, 1U);
}

TEST_F(SchedulerTest, TheQueueIsFairBetweenClients) {
  SchedulerSettings two = settings();
  two.parallel = 2;
  const auto running = scheduler(two, razor(model_, 8));
  const auto request = [&](const char* client, std::uint32_t seed) {
    GenerationRequest out = greedy(text(5, seed), 40);
    out.client = client;
    return running->submit(std::move(out));
  };
  std::vector<std::shared_ptr<Generation>> many;
  for (std::uint32_t i = 0; i < 6; ++i) many.push_back(request("many", i));
  const auto few = request("few", 50);
  const GenerationSummary first = collect(*few).summary;
  GenerationSummary last;
  for (const auto& generation : many) last = collect(*generation).summary;
  // The last of many was submitted before and began only when the other was done. Times are the engine's own: whoever
  // looks from another thread may look late.
  EXPECT_LT(first.queue_seconds + first.prefill_seconds + first.decode_seconds, last.queue_seconds);
}

TEST_F(SchedulerTest, ABudgetThatIsUsedUpFailsOneRequestOnly) {
  Session probe(model_, one_thread(KvType::f32), Policy::full(model_));
  probe.feed(text(200, 1));
  const std::size_t room = probe.statistics().kv_bytes * 3 / 2;
  const auto running = scheduler(settings(), Policy::full(model_), room);
  const std::vector<Token> first = collect(*running->submit(greedy(text(20, 1), 8))).choices[0].tokens;
  EXPECT_THROW(collect(*running->submit(greedy(text(700, 2), 8))), OutOfBudget);
  EXPECT_EQ(collect(*running->submit(greedy(text(20, 1), 8))).choices[0].tokens, first);
}

TEST_F(SchedulerTest, DrainsAndEndsWithoutLosingAnybody) {
  SchedulerSettings wanted = settings();
  wanted.parallel = 1;
  wanted.context = 1 << 20;
  auto running = scheduler(wanted, razor(model_, 8));
  const auto done = running->submit(greedy(text(5, 1), 3));
  running->drain(std::chrono::minutes(1));
  EXPECT_EQ(collect(*done).summary.generated_tokens, 3);
  EXPECT_THROW(running->submit(greedy(text(5, 1), 3)), server::ShuttingDown);

  running = scheduler(wanted, razor(model_, 8));
  const auto endless = running->submit(greedy(text(5, 1), 0));
  const auto waiting = running->submit(greedy(text(5, 1), 0));
  running->drain(std::chrono::milliseconds(20));
  EXPECT_THROW(collect(*endless), server::ShuttingDown);
  EXPECT_THROW(collect(*waiting), server::ShuttingDown);

  running = scheduler(wanted, razor(model_, 8));
  const auto left = running->submit(greedy(text(5, 1), 0));
  running.reset();
  EXPECT_THROW(collect(*left), server::ShuttingDown);
}

}  // namespace
}  // namespace razorkv::test
