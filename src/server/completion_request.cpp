#include "server/completion_request.h"

#include <fmt/format.h>

#include <charconv>
#include <limits>

#include "server/api_error.h"
#include "server/json_request.h"
#include "server/schema_grammar.h"

namespace razorkv::server {
namespace {

using nlohmann::json;

constexpr std::int64_t kMostTokens = std::int64_t{1} << 53U;
constexpr std::size_t kMostTopLogprobs = 20;
constexpr std::size_t kMostMessages = 4096;
constexpr std::size_t kLongestStop = 256;

std::vector<std::string> parse_stops(const RequestField& request) {
  std::vector<std::string> out;
  const auto stop = request.find("stop");
  if (!stop) return out;
  const auto add = [&](const RequestField& field) {
    out.push_back(field.string(kLongestStop));
    if (out.back().empty()) field.refuse("a string that is not empty");
  };
  if (stop->raw().is_string()) {
    add(*stop);
  } else if (stop->raw().is_array()) {
    for (const RequestField& field : stop->elements(16)) add(field);
  } else {
    stop->refuse("a string or an array of strings");
  }
  return out;
}

std::vector<LogitBias> parse_bias(const RequestField& request, const Vocabulary& vocabulary) {
  std::vector<LogitBias> out;
  const auto bias = request.find("logit_bias");
  if (!bias) return out;
  if (!bias->raw().is_object() || bias->raw().size() > 1024) bias->refuse("an object with at most 1024 token ids");
  for (const auto& [key, value] : bias->raw().items()) {
    Token token = 0;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), token);
    if (error != std::errc() || end != key.data() + key.size() || token < 0 || token >= vocabulary.size()) {
      bias->refuse(fmt::format("token ids from 0 to {} as names", vocabulary.size() - 1));
    }
    out.push_back({token, static_cast<float>(RequestField(value, "logit_bias." + key).number(-100, 100))});
  }
  return out;
}

std::string parse_format(const RequestField& request, const std::string& body) {
  const auto format = request.find("response_format");
  if (!format) return {};
  const RequestField type = format->at("type");
  const std::string name = type.string();
  if (name == "text") return {};
  if (name == "json_object") return json_object_grammar();
  if (name != "json_schema") type.refuse("text, json_object or json_schema");
  format->at("json_schema").at("schema");
  const auto ordered = nlohmann::ordered_json::parse(body);
  return schema_to_grammar(ordered["response_format"]["json_schema"]["schema"], "response_format.json_schema.schema");
}

void refuse_unsupported(const RequestField& request, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    const auto field = request.find(name);
    if (!field || field->raw() == json::array() || field->raw() == json(false) || field->raw() == json("none"))
      continue;
    throw ApiError(400, std::string(name) + ": this field is not supported", name, "unsupported_parameter");
  }
}

CompletionOptions parse_options(const RequestField& request, const std::string& body, const Vocabulary& vocabulary) {
  CompletionOptions out;
  request.string("model", "", 1024);
  SamplingParams& sampling = out.sampling;
  const auto real = [&](const char* name, double low, double high, float otherwise) {
    return static_cast<float>(request.number(name, low, high, otherwise));
  };
  sampling.temperature = real("temperature", 0, 100, sampling.temperature);
  sampling.top_p = real("top_p", 0, 1, sampling.top_p);
  sampling.min_p = real("min_p", 0, 1, sampling.min_p);
  sampling.top_k =
      static_cast<std::int32_t>(request.integer("top_k", 0, std::numeric_limits<std::int32_t>::max(), sampling.top_k));
  sampling.frequency_penalty = real("frequency_penalty", -2, 2, 0);
  sampling.presence_penalty = real("presence_penalty", -2, 2, 0);
  sampling.repeat_penalty = real("repeat_penalty", 0.01, 100, 1);
  sampling.penalty_last_n = static_cast<std::int32_t>(
      request.integer("repeat_last_n", -1, SamplingParams::kMaxPenaltyTokens, sampling.penalty_last_n));
  if (const std::int64_t seed = request.integer("seed", -1, std::numeric_limits<std::uint32_t>::max(), -1); seed >= 0) {
    sampling.seed = static_cast<std::uint32_t>(seed);
  }
  sampling.logit_bias = parse_bias(request, vocabulary);
  sampling.grammar = parse_format(request, body);
  out.stops = parse_stops(request);
  out.max_tokens = request.integer("max_tokens", 1, kMostTokens, 0);
  out.max_tokens = request.integer("max_completion_tokens", 1, kMostTokens, out.max_tokens);
  out.choices = static_cast<std::size_t>(request.integer("n", 1, 128, 1));
  out.stream = request.boolean("stream", false);
  if (const auto options = request.find("stream_options")) out.include_usage = options->boolean("include_usage", false);
  out.cache_prompt = request.boolean("cache_prompt", true);
  return out;
}

std::string parse_content(const RequestField& message) {
  const auto content = message.find("content");
  if (!content) {
    if (message.raw().contains("content") && message.at("role").raw() == json("assistant")) return {};
    message.at("content");
  }
  if (content->raw().is_string()) return content->string();
  if (!content->raw().is_array()) content->refuse("a string or an array of text parts");
  std::string out;
  for (const RequestField& part : content->elements(kMostMessages)) {
    const RequestField type = part.at("type");
    if (type.string() != "text") type.refuse("text; this server takes no other content");
    out += part.at("text").string();
  }
  return out;
}

std::vector<ChatMessage> messages_of(const RequestField& request) {
  std::vector<ChatMessage> out;
  for (const RequestField& message : request.at("messages").elements(kMostMessages)) {
    const RequestField role = message.at("role");
    std::string name = role.string();
    if (name == "developer") name = "system";
    if (name != "system" && name != "user" && name != "assistant") role.refuse("system, developer, user or assistant");
    out.push_back({name, parse_content(message)});
  }
  if (out.empty()) throw ApiError(400, "messages: expected at least one message", "messages");
  return out;
}

}  // namespace

std::vector<ChatMessage> parse_messages(const json& request) { return messages_of(RequestField(request)); }

std::vector<Token> parse_tokens(const json& value, const std::string& path, const Vocabulary& vocabulary) {
  std::vector<Token> out;
  for (const RequestField& field : RequestField(value, path).elements(std::size_t{1} << 24U)) {
    out.push_back(static_cast<Token>(field.integer(0, vocabulary.size() - 1)));
  }
  return out;
}

ChatRequest parse_chat_request(const std::string& body, const Vocabulary& vocabulary) {
  const json value = parse_request(body);
  const RequestField request(value);
  ChatRequest out;
  out.messages = messages_of(request);
  out.options = parse_options(request, body, vocabulary);
  refuse_unsupported(request, {"tools", "tool_choice", "functions", "function_call", "audio"});
  out.options.logprobs = request.boolean("logprobs", false);
  out.options.top_logprobs = static_cast<std::size_t>(request.integer("top_logprobs", 0, kMostTopLogprobs, 0));
  if (out.options.top_logprobs > 0 && !out.options.logprobs) {
    throw ApiError(400, "top_logprobs: needs logprobs to be true", "top_logprobs");
  }
  out.document = request.string("document", "", 256);
  return out;
}

TextRequest parse_text_request(const std::string& body, const Vocabulary& vocabulary) {
  const json value = parse_request(body);
  const RequestField request(value);
  TextRequest out;
  out.options = parse_options(request, body, vocabulary);
  refuse_unsupported(request, {"suffix", "echo"});
  if (const std::int64_t best = request.integer("best_of", 1, 128, 1); best != 1) {
    throw ApiError(400, "best_of: only 1 is supported", "best_of", "unsupported_parameter");
  }
  if (const auto logprobs = request.find("logprobs")) {
    out.options.logprobs = true;
    out.options.top_logprobs = static_cast<std::size_t>(logprobs->integer(0, kMostTopLogprobs));
  }
  const RequestField prompt = request.at("prompt");
  if (prompt.raw().is_string()) {
    out.prompt = prompt.string();
  } else if (prompt.raw().is_array() && prompt.raw().size() == 1 && prompt.raw()[0].is_string()) {
    out.prompt = prompt.raw()[0].get<std::string>();
  } else if (prompt.raw().is_array() && !prompt.raw().empty() && !prompt.raw()[0].is_string()) {
    out.prompt = parse_tokens(prompt.raw(), "prompt", vocabulary);
  } else {
    prompt.refuse("a string or an array of token ids; one prompt per request");
  }
  return out;
}

}  // namespace razorkv::server
