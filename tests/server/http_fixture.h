// A whole server on loopback with a tiny model, and a client for it.
#pragma once

#include <httplib.h>
#include <spdlog/spdlog.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "engine/session_fixture.h"
#include "server/http_server.h"
#include "server/routes.h"
#include "support/temporary_folder.h"

namespace razorkv::test {

using nlohmann::json;

struct ServerOptions {
  server::HttpSettings http;
  server::SchedulerSettings scheduling;
  server::AppSettings app;
  std::int64_t window = 24;

  ServerOptions() {
    http.port = 0;
    http.threads = 24;
    http.max_body_bytes = 1U << 20U;
    scheduling.context = 700;
    scheduling.micro_batch = 16;
    app.model_name = "tiny";
    app.chat_template = "chatml";
    app.timeout = std::chrono::seconds(60);
  }
};

/// The tiny vocabulary has no words, so most of its text is invalid UTF-8 that comes out as U+FFFD; requests compare
/// log-probabilities where text would not do.
class TestServer {
 public:
  explicit TestServer(const ServerOptions& options = {}, bool ready = true)
      : model_(tiny_public_model({.context = 1024})), options_(options), server_(options.http) {
    spdlog::set_level(spdlog::level::critical);
    server::add_all_routes(server_);
    port_ = server_.start();
    if (ready) load();
  }
  ~TestServer() {
    server_.stop();
    server_.set_app(nullptr);
  }
  TestServer(const TestServer&) = delete;
  TestServer& operator=(const TestServer&) = delete;

  void load() {
    const EngineSettings engine{1, 1, RowType::f32, 0};
    server_.set_app(std::make_shared<server::App>(model_, engine, razor(model_, options_.window), options_.scheduling,
                                                  options_.app));
  }
  server::App& app() { return *server_.app(); }
  int port() const { return port_; }

  httplib::Client client() const {
    httplib::Client out("127.0.0.1", port_);
    out.set_read_timeout(60);
    return out;
  }
  httplib::Result post(const std::string& path, const std::string& body, const httplib::Headers& headers = {}) const {
    return client().Post(path, headers, body, "application/json");
  }
  /// The body of a request that must succeed.
  json ok(const std::string& path, const json& body) const {
    const auto result = post(path, body.dump());
    EXPECT_TRUE(result) << path;
    if (!result) return {};
    EXPECT_EQ(result->status, 200) << result->body;
    return json::parse(result->body);
  }
  json get(const std::string& path) const {
    const auto result = client().Get(path);
    EXPECT_TRUE(result) << path;
    return result ? json::parse(result->body) : json();
  }

 private:
  Model model_;
  ServerOptions options_;
  server::HttpServer server_;
  int port_ = 0;
};

inline json chat_request(const std::string& text, int tokens = 8) {
  return {{"messages", {{{"role", "user"}, {"content", text}}}},
          {"temperature", 0},
          {"max_tokens", tokens},
          {"logprobs", true}};
}

/// The values of a stream's events but the last, which must be "[DONE]".
inline std::vector<json> events(const std::string& body) {
  std::vector<json> out;
  bool done = false;
  for (std::size_t at = 0; at < body.size();) {
    const std::size_t end = body.find("\n\n", at);
    const std::string event = body.substr(at, end - at);
    EXPECT_TRUE(event.starts_with("data: ")) << event;
    EXPECT_FALSE(done);
    if (event == "data: [DONE]") {
      done = true;
    } else {
      out.push_back(json::parse(event.substr(6)));
    }
    at = end + 2;
  }
  EXPECT_TRUE(done);
  return out;
}

/// Every token's log-probability of the first choice.
inline std::vector<double> logprobs(const json& answer) {
  std::vector<double> out;
  for (const json& token : answer["choices"][0]["logprobs"]["content"]) out.push_back(token["logprob"]);
  return out;
}

}  // namespace razorkv::test
