#include "server/http_server.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/sha256.h"
#include "razorkv/error.h"
#include "server/completion_response.h"

namespace razorkv::server {
namespace {

using Clock = std::chrono::steady_clock;
thread_local Clock::time_point request_start;  // a request is read and answered on one thread

std::string digest(const std::string& text) {
  Sha256 hash;
  hash.update(text);
  return hash.hex();
}

/// Takes the same time wherever the texts differ. Both are digests, so their lengths tell nothing.
bool equal_in_constant_time(const std::string& a, const std::string& b) {
  unsigned difference = a.size() == b.size() ? 0 : 1;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    difference |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]);
  }
  return difference == 0;
}

bool is_loopback(const std::string& host) { return host == "127.0.0.1" || host == "localhost" || host == "::1"; }

std::string host_name(const std::string& host_header) {
  if (host_header.starts_with('[')) return host_header.substr(1, host_header.find(']') - 1);
  return host_header.substr(0, host_header.find(':'));
}

void log_request(const httplib::Request& request, const httplib::Response& response) {
  const double ms = std::chrono::duration<double, std::milli>(Clock::now() - request_start).count();
  // As JSON: a path may hold anything, line ends too. Queries and headers may hold secrets.
  spdlog::info("{} {} {} {:.1f} ms from {}", request.method, to_text(request.path), response.status, ms,
               request.remote_addr);
}

}  // namespace

void send_json(httplib::Response& response, const nlohmann::json& value, int status) {
  response.status = status;
  response.set_content(to_text(value), "application/json");
}

void send_error(httplib::Response& response, const ApiError& error) {
  if (error.status() == 429 || error.status() == 503) response.set_header("Retry-After", "1");
  send_json(response, error.body(), error.status());
}

HttpServer::HttpServer(HttpSettings settings) : settings_(std::move(settings)) {
  for (std::string& key : settings_.api_keys) key = digest(key);
  server_.new_task_queue = [threads = settings_.threads] { return new httplib::ThreadPool(threads); };
  server_.set_payload_max_length(settings_.max_body_bytes);
  server_.set_tcp_nodelay(true);
  server_.set_keep_alive_max_count(1000);
  server_.set_pre_routing_handler([](const httplib::Request& request, httplib::Response& response) {
    request_start = Clock::now();
    if (!request.has_header("Content-Encoding")) return httplib::Server::HandlerResponse::Unhandled;
    response.set_header("Connection", "close");
    send_error(response, {415, "compressed request bodies are not supported"});
    return httplib::Server::HandlerResponse::Handled;
  });
  server_.set_error_handler([](const httplib::Request&, httplib::Response& response) {
    if (!response.body.empty()) return;
    const int status = response.status;
    send_error(response, {status, status == 404   ? "there is nothing at this path"
                                  : status == 413 ? "the body is longer than the server takes"
                                                  : "the request cannot be read"});
  });
  server_.set_exception_handler([](const httplib::Request&, httplib::Response& response,
                                   const std::exception_ptr& error) { send_error(response, to_api_error(error)); });
  server_.set_logger(log_request);
  server_.Options(".*", [this](const httplib::Request& request, httplib::Response& response) {
    allow_origin(request, response);
    response.set_header("Access-Control-Allow-Methods", "GET, POST, DELETE");
    response.set_header("Access-Control-Allow-Headers", "Authorization, Content-Type");
    response.status = 204;
  });
}

HttpServer::~HttpServer() { stop(); }

void HttpServer::set_app(std::shared_ptr<App> app) {
  const std::scoped_lock lock(mutex_);
  app_ = std::move(app);
}

std::shared_ptr<App> HttpServer::app() const {
  const std::scoped_lock lock(mutex_);
  return app_;
}

void HttpServer::check_access(const httplib::Request& request) const {
  if (settings_.api_keys.empty()) return;
  const std::string header = request.get_header_value("Authorization");
  const std::string prefix = "Bearer ";
  const std::string given = digest(header.starts_with(prefix) ? header.substr(prefix.size()) : std::string());
  bool known = false;
  for (const std::string& key : settings_.api_keys) known = equal_in_constant_time(given, key) || known;
  if (!known) throw ApiError(401, "a valid key is needed: Authorization: Bearer KEY", {}, "invalid_api_key");
}

void HttpServer::check_origin(const httplib::Request& request) const {
  const std::string host = request.get_header_value("Host");
  // A name that resolves to this machine for an attacker's page: without keys, only local names are answered.
  if (settings_.api_keys.empty() && is_loopback(settings_.host) && !is_loopback(host_name(host))) {
    throw ApiError(403, "this server answers to local names only; give it --api-key to be reached by another");
  }
  const std::string origin = request.get_header_value("Origin");
  if (origin.empty() || origin == "http://" + host || origin == "https://" + host) return;
  const auto& allowed = settings_.origins;
  if (std::find(allowed.begin(), allowed.end(), origin) == allowed.end() &&
      std::find(allowed.begin(), allowed.end(), "*") == allowed.end()) {
    throw ApiError(403, "pages of this origin may not use the server (--allow-origin)");
  }
}

void HttpServer::allow_origin(const httplib::Request& request, httplib::Response& response) const {
  const std::string origin = request.get_header_value("Origin");
  const auto& allowed = settings_.origins;
  if (origin.empty() || (std::find(allowed.begin(), allowed.end(), origin) == allowed.end() &&
                         std::find(allowed.begin(), allowed.end(), "*") == allowed.end())) {
    return;
  }
  response.set_header("Access-Control-Allow-Origin", origin);
  response.set_header("Vary", "Origin");
}

httplib::Server::Handler HttpServer::guarded(Handler handler, bool has_body) {
  return [this, handler = std::move(handler), has_body](const httplib::Request& request, httplib::Response& response) {
    try {
      check_origin(request);
      allow_origin(request, response);
      check_access(request);
      if (has_body && !request.body.empty() &&
          !request.get_header_value("Content-Type").starts_with("application/json")) {
        throw ApiError(415, "expected a JSON body; send the header Content-Type: application/json");
      }
      const std::shared_ptr<App> ready = app();
      if (!ready) throw ApiError(503, "the model is being loaded", {}, "loading");
      handler(*ready, request, response);
    } catch (...) {
      send_error(response, to_api_error(std::current_exception()));
    }
  };
}

void HttpServer::get(const std::string& pattern, Handler handler) {
  server_.Get(pattern, guarded(std::move(handler), false));
}
void HttpServer::post(const std::string& pattern, Handler handler) {
  server_.Post(pattern, guarded(std::move(handler), true));
}
void HttpServer::remove(const std::string& pattern, Handler handler) {
  server_.Delete(pattern, guarded(std::move(handler), false));
}
void HttpServer::get_open(const std::string& pattern, httplib::Server::Handler handler) {
  server_.Get(pattern, std::move(handler));
}

int HttpServer::start() {
  int port = settings_.port;
  if (port == 0) {
    port = server_.bind_to_any_port(settings_.host);
  } else if (!server_.bind_to_port(settings_.host, port)) {
    port = -1;
  }
  if (port < 0) {
    throw InvalidArgument("cannot listen on " + settings_.host + ":" + std::to_string(settings_.port) +
                          "; is the port in use, or the address not of this machine?");
  }
  thread_ = std::thread([this] { server_.listen_after_bind(); });
  while (!server_.is_running()) std::this_thread::sleep_for(std::chrono::milliseconds(1));  // stop() needs it to run
  return port;
}

void HttpServer::stop() {
  if (!thread_.joinable()) return;
  server_.stop();
  thread_.join();
}

}  // namespace razorkv::server
