#include "server/completion_response.h"

#include <fmt/format.h>

#include <ctime>
#include <random>

#include "base/utf8.h"

namespace razorkv::server {
namespace {

using nlohmann::json;

const char* name(FinishReason reason) { return reason == FinishReason::stop ? "stop" : "length"; }

double per_second(std::int64_t count, double seconds) {
  return seconds > 0.0 ? static_cast<double>(count) / seconds : 0.0;
}

}  // namespace

std::string random_id() {
  std::random_device source;
  return fmt::format("{:08x}{:08x}{:08x}", source(), source(), source());
}

std::string to_text(const json& value) { return value.dump(-1, ' ', false, json::error_handler_t::replace); }

CompletionResponse::CompletionResponse(Facts facts, const Vocabulary& vocabulary)
    : facts_(std::move(facts)),
      vocabulary_(vocabulary),
      id_((facts_.chat ? "chatcmpl-" : "cmpl-") + random_id()),
      created_(std::time(nullptr)),
      choices_(facts_.choices) {}

json CompletionResponse::frame(const char* object) const {
  return {{"id", id_}, {"object", object}, {"created", created_}, {"model", facts_.model}};
}

json CompletionResponse::chat_logprob(const TokenScore& score) const {
  const std::string piece = vocabulary_.piece(score.token, true);
  json bytes = json::array();
  for (const char byte : piece) bytes.push_back(static_cast<unsigned char>(byte));
  return {{"token", replace_invalid_utf8(piece)}, {"logprob", score.logprob}, {"bytes", bytes}};
}

json CompletionResponse::logprobs(const std::vector<ScoredToken>& tokens) const {
  if (!facts_.logprobs) return nullptr;
  if (facts_.chat) {
    json content = json::array();
    for (const ScoredToken& token : tokens) {
      json one = chat_logprob(token.chosen);
      one["top_logprobs"] = json::array();
      for (const TokenScore& score : token.top) one["top_logprobs"].push_back(chat_logprob(score));
      content.push_back(std::move(one));
    }
    return {{"content", content}};
  }
  json out = {{"tokens", json::array()}, {"token_logprobs", json::array()}, {"top_logprobs", json::array()}};
  const auto text = [&](Token token) { return replace_invalid_utf8(vocabulary_.piece(token, true)); };
  for (const ScoredToken& token : tokens) {
    out["tokens"].push_back(text(token.chosen.token));
    out["token_logprobs"].push_back(token.chosen.logprob);
    json top = json::object();
    for (const TokenScore& score : token.top) top[text(score.token)] = score.logprob;
    out["top_logprobs"].push_back(std::move(top));
  }
  return out;
}

json CompletionResponse::first_chunk(std::size_t choice) const {
  json out = frame("chat.completion.chunk");
  out["choices"] = {{{"index", choice},
                     {"delta", {{"role", "assistant"}, {"content", ""}}},
                     {"logprobs", nullptr},
                     {"finish_reason", nullptr}}};
  return out;
}

json CompletionResponse::chunk(const GenerationDelta& delta) const {
  json out = frame(facts_.chat ? "chat.completion.chunk" : "text_completion");
  json choice = {{"index", delta.choice},
                 {"logprobs", delta.tokens.empty() ? json() : logprobs(delta.tokens)},
                 {"finish_reason", delta.finish ? json(name(*delta.finish)) : json()}};
  if (facts_.chat) {
    choice["delta"] = delta.text.empty() ? json::object() : json{{"content", delta.text}};
  } else {
    choice["text"] = delta.text;
  }
  out["choices"] = json::array({std::move(choice)});
  return out;
}

void CompletionResponse::add_summary(json& out, const GenerationSummary& summary) const {
  out["usage"] = {{"prompt_tokens", summary.prompt_tokens},
                  {"completion_tokens", summary.generated_tokens},
                  {"total_tokens", summary.prompt_tokens + summary.generated_tokens},
                  {"prompt_tokens_details", {{"cached_tokens", summary.cached_tokens}}}};
  out["timings"] = {{"cache_n", summary.cached_tokens},
                    {"prompt_n", summary.prefilled_tokens},
                    {"prompt_ms", summary.prefill_seconds * 1e3},
                    {"prompt_per_second", per_second(summary.prefilled_tokens, summary.prefill_seconds)},
                    {"predicted_n", summary.generated_tokens},
                    {"predicted_ms", summary.decode_seconds * 1e3},
                    {"predicted_per_second", per_second(summary.generated_tokens, summary.decode_seconds)},
                    {"queue_ms", summary.queue_seconds * 1e3}};
  out["kv"] = {{"bytes", summary.kv.allocated_bytes},
               {"row_bytes", summary.kv.row_bytes},
               {"uncompressed_bytes", summary.kv.uncompressed_bytes},
               {"tokens", summary.kv.tokens},
               {"compressed", summary.compressed},
               {"policy", facts_.policy}};
}

json CompletionResponse::usage_chunk(const GenerationSummary& summary) const {
  json out = frame(facts_.chat ? "chat.completion.chunk" : "text_completion");
  out["choices"] = json::array();
  add_summary(out, summary);
  return out;
}

void CompletionResponse::add(const GenerationDelta& delta) {
  Choice& choice = choices_.at(delta.choice);
  choice.text += delta.text;
  choice.tokens.insert(choice.tokens.end(), delta.tokens.begin(), delta.tokens.end());
  if (delta.finish) choice.finish = *delta.finish;
}

json CompletionResponse::whole(const GenerationSummary& summary) const {
  json out = frame(facts_.chat ? "chat.completion" : "text_completion");
  out["choices"] = json::array();
  for (std::size_t i = 0; i < choices_.size(); ++i) {
    const Choice& choice = choices_[i];
    json one = {{"index", i}, {"logprobs", logprobs(choice.tokens)}, {"finish_reason", name(choice.finish)}};
    if (facts_.chat) {
      one["message"] = {{"role", "assistant"}, {"content", choice.text}};
    } else {
      one["text"] = choice.text;
    }
    out["choices"].push_back(std::move(one));
  }
  add_summary(out, summary);
  return out;
}

}  // namespace razorkv::server
