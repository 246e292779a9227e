#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <string>

#include "engine/model_handle.h"
#include "engine/policy_handle.h"
#include "razorkv/version.h"
#include "server/completion_request.h"
#include "server/completion_response.h"
#include "server/json_request.h"
#include "server/page.h"
#include "server/routes.h"

namespace razorkv::server {
namespace {

using nlohmann::json;

void models(App& app, const httplib::Request& /*http*/, httplib::Response& response) {
  const ModelInfo info = app.scheduler.model().info();
  send_json(response, {{"object", "list"},
                       {"data",
                        {{{"id", app.settings.model_name},
                          {"object", "model"},
                          {"created", std::time(nullptr)},
                          {"owned_by", "razorkv"},
                          {"meta",
                           {{"architecture", info.architecture},
                            {"n_vocab", info.vocabulary},
                            {"n_ctx_train", info.context},
                            {"fingerprint", info.fingerprint}}}}}}});
}

void props(App& app, const httplib::Request& /*http*/, httplib::Response& response) {
  const SchedulerSettings& settings = app.scheduler.settings();
  const Policy& policy = app.scheduler.policy();
  json heads = json::array();  // [layer][KV head]: 1 = keeps everything
  for (const auto& layer : policy.impl()->rules->rules) {
    json row = json::array();
    for (const HeadRule& rule : layer) row.push_back(rule.everything ? 1 : 0);
    heads.push_back(std::move(row));
  }
  const ModelInfo info = app.scheduler.model().info();
  send_json(response, {{"model", app.settings.model_name},
                       {"version", version()},
                       {"n_ctx", settings.context},
                       {"total_slots", settings.parallel},
                       {"chat", app.chat_template != nullptr},
                       {"kv_bytes_per_token_f16", info.kv_bytes_per_token_f16},
                       {"policy", {{"name", policy.name()}, {"description", policy.description()}, {"heads", heads}}},
                       {"documents_saved", !app.settings.document_folder.empty()}});
}

void slots(App& app, const httplib::Request& /*http*/, httplib::Response& response) {
  const SchedulerStatus status = app.scheduler.status();
  json out = json::array();
  for (std::size_t i = 0; i < app.scheduler.settings().parallel; ++i) {
    const bool processing = i < status.slots.size() && status.slots[i];
    out.push_back({{"id", i}, {"n_ctx", app.scheduler.settings().context}, {"is_processing", processing}});
  }
  send_json(response, out);
}

void metrics(App& app, const httplib::Request& /*http*/, httplib::Response& response) {
  const SchedulerStatus status = app.scheduler.status();
  std::string out;
  const auto add = [&](const char* name, const char* type, const char* help, auto value) {
    out += fmt::format("# HELP razorkv:{0} {1}\n# TYPE razorkv:{0} {2}\nrazorkv:{0} {3}\n", name, help, type, value);
  };
  add("requests_total", "counter", "Requests taken into the queue", status.requests);
  add("requests_rejected_total", "counter", "Requests refused because the queue was full", status.rejected);
  add("requests_cancelled_total", "counter", "Requests ended by their client, by time or by shutdown",
      status.cancelled);
  add("requests_failed_total", "counter", "Requests that ended with an error, cancelled ones included", status.failed);
  add("prompt_tokens_total", "counter", "Prompt tokens computed", status.prompt_tokens);
  add("cached_tokens_total", "counter", "Prompt tokens taken from kept states", status.cached_tokens);
  add("tokens_predicted_total", "counter", "Tokens generated", status.generated_tokens);
  add("prompt_seconds_total", "counter", "Time spent on prompts", status.prefill_seconds);
  add("tokens_predicted_seconds_total", "counter", "Time spent on generating", status.decode_seconds);
  add("requests_processing", "gauge", "Requests that run", status.running);
  add("requests_deferred", "gauge", "Requests that wait", status.waiting);
  add("slots_processing", "gauge", "Slots in use", std::count(status.slots.begin(), status.slots.end(), true));
  add("checkpoints", "gauge", "States kept for later requests", status.checkpoints);
  add("kv_bytes", "gauge", "Bytes of KV pages in use", status.pool.live_bytes);
  add("kv_peak_bytes", "gauge", "Most bytes of KV pages that were ever in use", status.pool.peak_bytes);
  add("documents", "gauge", "Documents known", app.documents.list().size());
  response.set_content(out, "text/plain; version=0.0.4");
}

void tokenize(App& app, const httplib::Request& http, httplib::Response& response) {
  const json value = parse_request(http.body);
  const RequestField request(value);
  const std::string text = request.at("content").string();
  send_json(response, {{"tokens", app.scheduler.model().tokenize(text, request.boolean("add_special", false),
                                                                 request.boolean("parse_special", false))}});
}

void detokenize(App& app, const httplib::Request& http, httplib::Response& response) {
  const json value = parse_request(http.body);
  const RequestField tokens = RequestField(value).at("tokens");
  const std::vector<Token> ids = parse_tokens(tokens.raw(), "tokens", app.vocabulary());
  send_json(response, {{"content", app.scheduler.model().detokenize(ids, true)}});
}

void apply_template(App& app, const httplib::Request& http, httplib::Response& response) {
  const json value = parse_request(http.body);
  const std::vector<Token> tokens = app.chat().render(parse_messages(value));
  send_json(response, {{"prompt", app.scheduler.model().detokenize(tokens, true)}, {"tokens", tokens}});
}

}  // namespace

void add_native_routes(HttpServer& server) {
  server.get_open("/health", [&server](const httplib::Request&, httplib::Response& response) {
    if (server.app()) {
      send_json(response, {{"status", "ok"}});
    } else {
      send_error(response, {503, "the model is being loaded", {}, "loading"});
    }
  });
  server.get("/v1/models", models);
  server.get("/props", props);
  server.get("/slots", slots);
  server.get("/metrics", metrics);
  server.post("/tokenize", tokenize);
  server.post("/detokenize", detokenize);
  server.post("/apply-template", apply_template);
}

void add_all_routes(HttpServer& server) {
  add_native_routes(server);
  add_completion_routes(server);
  add_document_routes(server);
  add_slot_routes(server);
  add_page_routes(server);
}

}  // namespace razorkv::server
