// A scheduler on a tiny model, and what its requests give.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/model_handle.h"
#include "engine/session_fixture.h"
#include "server/scheduler.h"

namespace razorkv::test {

using server::FinishReason;
using server::Generation;
using server::GenerationDelta;
using server::GenerationRequest;
using server::GenerationSummary;
using server::Scheduler;
using server::SchedulerSettings;

struct Answer {
  std::string text;
  std::vector<Token> tokens;
  std::vector<float> logprobs;
  std::optional<FinishReason> finish;
};

struct Result {
  std::vector<Answer> choices;
  GenerationSummary summary;
};

/// Waits for the end; throws what the generation throws, and std::runtime_error after a minute without news.
inline Result collect(Generation& generation, std::size_t choices = 1) {
  Result result;
  result.choices.resize(choices);
  for (;;) {
    GenerationDelta delta;
    switch (generation.next(delta, std::chrono::minutes(1))) {
      case Generation::Wait::finished:
        result.summary = generation.summary();
        return result;
      case Generation::Wait::timeout:
        throw std::runtime_error("nothing happened for a minute");
      case Generation::Wait::progress:
        break;
      case Generation::Wait::delta: {
        Answer& answer = result.choices.at(delta.choice);
        answer.text += delta.text;
        for (const server::ScoredToken& token : delta.tokens) {
          answer.tokens.push_back(token.chosen.token);
          answer.logprobs.push_back(token.chosen.logprob);
        }
        if (delta.finish) answer.finish = delta.finish;
      }
    }
  }
}

/// The status after all that has been delivered.
inline server::SchedulerStatus settled(Scheduler& scheduler) {
  scheduler.on_engine([](const std::shared_ptr<Engine>&) {});
  return scheduler.status();
}

class SchedulerTest : public ::testing::Test {
 protected:
  SchedulerSettings settings() const {
    SchedulerSettings out;
    out.parallel = 4;
    out.micro_batch = 16;
    return out;
  }
  std::unique_ptr<Scheduler> scheduler(const SchedulerSettings& wanted, const Policy& policy,
                                       std::size_t budget = 0) const {
    const EngineSettings engine{1, 1, RowType::f32, budget};
    return std::make_unique<Scheduler>(model_, engine, policy, wanted);
  }
  std::unique_ptr<Scheduler> scheduler() const { return scheduler(settings(), razor(model_, 8)); }

  /// Greedy, with no end of generation, log-probabilities on: the answer's tokens can be read back.
  GenerationRequest greedy(std::vector<Token> prompt, std::int64_t count) const {
    GenerationRequest request;
    SamplingParams params;
    params.temperature = 0.0F;
    for (Token token = 0; token < kTinyVocabulary; ++token) {
      if (model_.ends_generation(token)) params.logit_bias.push_back({token, -std::numeric_limits<float>::infinity()});
    }
    request.samplers.emplace_back(model_.impl()->vocabulary, params);
    request.prompt = std::move(prompt);
    request.max_tokens = count;
    request.logprobs = true;
    return request;
  }

  const Model model_ = tiny_public_model();
};

}  // namespace razorkv::test
