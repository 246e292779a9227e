// Answers in OpenAI's shapes, whole and as chunks of a stream.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "model/vocabulary.h"
#include "server/generation.h"

namespace razorkv::server {

/// One request's answer.
class CompletionResponse {
 public:
  struct Facts {
    bool chat = true;
    std::string model;
    std::string policy;  ///< what the KV cache keeps, for people
    bool logprobs = false;
    std::size_t choices = 1;
  };

  CompletionResponse(Facts facts, const Vocabulary& vocabulary);

  /// The first chunk of each choice of a chat names the role.
  nlohmann::json first_chunk(std::size_t choice) const;
  nlohmann::json chunk(const GenerationDelta& delta) const;
  /// Behind the last one: usage, timings and KV bytes, no choices.
  nlohmann::json usage_chunk(const GenerationSummary& summary) const;

  void add(const GenerationDelta& delta);
  /// All that was added.
  nlohmann::json whole(const GenerationSummary& summary) const;

 private:
  struct Choice {
    std::string text;
    std::vector<ScoredToken> tokens;
    FinishReason finish = FinishReason::stop;
  };
  nlohmann::json frame(const char* object) const;
  nlohmann::json logprobs(const std::vector<ScoredToken>& tokens) const;
  nlohmann::json chat_logprob(const TokenScore& score) const;
  void add_summary(nlohmann::json& out, const GenerationSummary& summary) const;

  Facts facts_;
  const Vocabulary& vocabulary_;
  std::string id_;
  std::int64_t created_;
  std::vector<Choice> choices_;
};

/// 24 hexadecimal digits that nobody can guess.
std::string random_id();

/// Any JSON on one line; bytes that are not UTF-8 become U+FFFD.
std::string to_text(const nlohmann::json& value);

}  // namespace razorkv::server
