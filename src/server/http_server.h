// The HTTP side: listening, keys, origins, limits, logs; routes are added by routes.h.
#pragma once

#include <httplib.h>

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "server/api_error.h"
#include "server/app.h"

namespace razorkv::server {

struct HttpSettings {
  std::string host = "127.0.0.1";
  int port = 8080;                    ///< 0 = any that is free
  std::vector<std::string> api_keys;  ///< none: no key is needed
  std::vector<std::string> origins;   ///< other origins that browsers may call from; "*" = all
  std::size_t max_body_bytes = std::size_t{64} << 20U;
  std::size_t threads = 80;  ///< requests that are held at once, waiting ones included
};

class HttpServer {
 public:
  using Handler = std::function<void(App& app, const httplib::Request& request, httplib::Response& response)>;

  explicit HttpServer(HttpSettings settings);
  ~HttpServer();

  /// Until then every route but /health and the page answers 503.
  void set_app(std::shared_ptr<App> app);
  std::shared_ptr<App> app() const;
  /// `pattern` is a regular expression. Whatever the handler throws becomes an error object.
  void get(const std::string& pattern, Handler handler);
  void post(const std::string& pattern, Handler handler);
  void remove(const std::string& pattern, Handler handler);
  /// A route that needs neither key nor model.
  void get_open(const std::string& pattern, httplib::Server::Handler handler);

  /// Begins to listen; returns the port. Throws InvalidArgument when the address cannot be used.
  int start();
  /// Refuses new connections and waits for those that are being answered.
  void stop();

 private:
  httplib::Server::Handler guarded(Handler handler, bool has_body);
  void check_access(const httplib::Request& request) const;
  void check_origin(const httplib::Request& request) const;
  void allow_origin(const httplib::Request& request, httplib::Response& response) const;

  HttpSettings settings_;
  httplib::Server server_;
  mutable std::mutex mutex_;
  std::shared_ptr<App> app_;
  std::thread thread_;
};

void send_json(httplib::Response& response, const nlohmann::json& value, int status = 200);
void send_error(httplib::Response& response, const ApiError& error);

}  // namespace razorkv::server
