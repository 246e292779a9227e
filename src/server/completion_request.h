// Bodies of /v1/chat/completions and /v1/completions.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <variant>
#include <vector>

#include "model/vocabulary.h"
#include "razorkv/model.h"
#include "razorkv/sampling.h"

namespace razorkv::server {

/// Fields that both have.
struct CompletionOptions {
  SamplingParams sampling;
  std::vector<std::string> stops;
  std::int64_t max_tokens = 0;  ///< 0 = no limit but the context
  std::size_t choices = 1;
  bool stream = false;
  bool include_usage = false;
  bool logprobs = false;
  std::size_t top_logprobs = 0;
  bool cache_prompt = true;
};

struct ChatRequest {
  CompletionOptions options;
  std::vector<ChatMessage> messages;
  std::string document;  ///< id; empty = none
};

struct TextRequest {
  CompletionOptions options;
  std::variant<std::string, std::vector<Token>> prompt;
};

/// All throw ApiError (400) naming the field that is wrong or not supported. Fields that are not known are passed over.
ChatRequest parse_chat_request(const std::string& body, const Vocabulary& vocabulary);
TextRequest parse_text_request(const std::string& body, const Vocabulary& vocabulary);
/// The field `messages`: system (or developer), user and assistant, with text only.
std::vector<ChatMessage> parse_messages(const nlohmann::json& request);
/// A list of token ids of the vocabulary.
std::vector<Token> parse_tokens(const nlohmann::json& value, const std::string& path, const Vocabulary& vocabulary);

}  // namespace razorkv::server
