#include <optional>
#include <utility>

#include "engine/model_handle.h"
#include "razorkv/error.h"
#include "server/answer.h"
#include "server/completion_request.h"
#include "server/completion_response.h"
#include "server/routes.h"

namespace razorkv::server {
namespace {

struct Prompt {
  std::vector<Token> tokens;
  std::shared_ptr<const Checkpoint> start;
  std::string document;
  bool conversation = false;
};

/// Who the queue is fair to: a key where there are keys, else an address.
std::string client_of(const httplib::Request& request) {
  const std::string key = request.get_header_value("Authorization");
  return key.empty() ? request.remote_addr : key;
}

GenerationRequest generation_request(const App& app, const httplib::Request& http, const CompletionOptions& options,
                                     Prompt prompt) {
  GenerationRequest out;
  SamplingParams sampling = options.sampling;
  for (std::size_t i = 0; i < options.choices; ++i) {
    out.samplers.emplace_back(app.scheduler.model().impl()->vocabulary, sampling);
    for (const Token token : prompt.tokens) out.samplers.back().accept_prompt(token);
    if (sampling.seed) ++*sampling.seed;
  }
  out.prompt = std::move(prompt.tokens);
  out.start = std::move(prompt.start);
  out.base = std::move(prompt.document);
  out.conversation = prompt.conversation;
  out.reuse = options.cache_prompt;
  out.stops = options.stops;
  out.max_tokens = options.max_tokens;
  out.logprobs = options.logprobs;
  out.top_logprobs = options.top_logprobs;
  out.client = client_of(http);
  out.deadline = std::chrono::steady_clock::now() + app.settings.timeout;
  return out;
}

struct Stream {
  ClientWait client;
  CompletionResponse response;
  std::optional<GenerationDelta> first;
  bool finished = false;
};

void write_stream(Stream& stream, const CompletionOptions& options, bool chat, const SendEvent& send) {
  const auto write = [&](const nlohmann::json& value) {
    if (!send(to_text(value))) throw Cancelled("the client has closed the connection");
  };
  if (chat) {
    for (std::size_t i = 0; i < options.choices; ++i) write(stream.response.first_chunk(i));
  }
  if (stream.first) write(stream.response.chunk(*stream.first));
  while (!stream.finished) {
    GenerationDelta delta;
    const Generation::Wait news = stream.client.next(delta);
    if (news == Generation::Wait::delta) write(stream.response.chunk(delta));
    if (news == Generation::Wait::finished) stream.finished = true;
  }
  if (options.include_usage) write(stream.response.usage_chunk(stream.client.generation().summary()));
}

void answer(App& app, const httplib::Request& http, httplib::Response& response, const CompletionOptions& options,
            Prompt prompt) {
  CompletionResponse::Facts facts;
  facts.chat = prompt.conversation;
  facts.model = app.settings.model_name;
  facts.policy = app.scheduler.policy().description();
  facts.logprobs = options.logprobs;
  facts.choices = options.choices;
  const bool chat = facts.chat;
  const auto generation = app.scheduler.submit(generation_request(app, http, options, std::move(prompt)));
  const auto stream = std::make_shared<Stream>(
      Stream{ClientWait(generation, http), CompletionResponse(std::move(facts), app.vocabulary()), {}, false});
  // A stream's status is sent with its first event: until then whatever fails has a status of its own.
  while (!stream->finished && !(options.stream && stream->first)) {
    GenerationDelta delta;
    const Generation::Wait news = stream->client.next(delta);
    stream->finished = news == Generation::Wait::finished;
    if (news != Generation::Wait::delta) continue;
    if (options.stream) {
      stream->first = std::move(delta);
    } else {
      stream->response.add(delta);
    }
  }
  if (!options.stream) {
    send_json(response, stream->response.whole(generation->summary()));
    return;
  }
  send_events(response, generation,
              [stream, options, chat](const SendEvent& send) { write_stream(*stream, options, chat, send); });
}

void chat(App& app, const httplib::Request& http, httplib::Response& response) {
  const ChatRequest request = parse_chat_request(http.body, app.vocabulary());
  Prompt prompt;
  prompt.conversation = true;
  prompt.document = request.document;
  if (request.document.empty()) {
    prompt.tokens = app.chat().render(request.messages);
  } else {
    prompt.start = app.documents.open(request.document);
    prompt.tokens = prompt.start->tokens;
    const std::vector<Token> questions = app.documents.questions(request.messages);
    prompt.tokens.insert(prompt.tokens.end(), questions.begin(), questions.end());
  }
  answer(app, http, response, request.options, std::move(prompt));
}

void complete(App& app, const httplib::Request& http, httplib::Response& response) {
  TextRequest request = parse_text_request(http.body, app.vocabulary());
  Prompt prompt;
  if (const auto* text = std::get_if<std::string>(&request.prompt)) {
    prompt.tokens = app.scheduler.model().tokenize(*text);
  } else {
    prompt.tokens = std::get<std::vector<Token>>(std::move(request.prompt));
  }
  if (prompt.tokens.empty()) throw ApiError(400, "prompt: expected at least one token, found none", "prompt");
  answer(app, http, response, request.options, std::move(prompt));
}

}  // namespace

void add_completion_routes(HttpServer& server) {
  server.post("(?:/v1)?/chat/completions", chat);
  server.post("(?:/v1)?/completions", complete);
}

}  // namespace razorkv::server
