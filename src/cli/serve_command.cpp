// razorkv serve: the OpenAI-style server.
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "base/text_file.h"
#include "cli/commands.h"
#include "cli/common_options.h"
#include "cli/interrupt.h"
#include "cli/report.h"
#include "engine/engine_settings.h"
#include "razorkv/error.h"
#include "server/routes.h"

namespace razorkv::cli {
namespace {

struct ServeArguments {
  ModelArguments model;
  SessionArguments session;
  PolicyArguments policy;
  server::HttpSettings http;
  server::SchedulerSettings scheduling;
  server::AppSettings app;
  std::string api_key_file;
  std::int64_t cache_mb = 1024;
  std::int64_t body_mb = 64;
  std::int64_t timeout_seconds = 600;
  std::int64_t grace_seconds = 10;
};

std::vector<std::string> keys_of(const ServeArguments& arguments) {
  std::vector<std::string> keys = arguments.http.api_keys;
  if (!arguments.api_key_file.empty()) {
    std::istringstream lines(read_text_file(arguments.api_key_file));
    for (std::string line; std::getline(lines, line);) {
      while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.pop_back();
      if (!line.empty()) keys.push_back(line);
    }
    if (keys.empty()) throw InvalidArgument(arguments.api_key_file + ": expected one key a line, found none");
  }
  for (const std::string& key : keys) {
    if (key.empty()) throw InvalidArgument("--api-key: a key must not be empty");
  }
  return keys;
}

void make_folder(const std::string& path) try {
  if (!path.empty()) std::filesystem::create_directories(path);
} catch (const std::filesystem::filesystem_error& error) {
  throw FileError(std::string("the folder of saved slots cannot be used: ") + error.what());
}

std::shared_ptr<server::App> load(const ServeArguments& arguments) {
  const SessionOptions options = arguments.session.options();
  const Model model = arguments.model.load();
  server::SchedulerSettings scheduling = arguments.scheduling;
  scheduling.context = options.context > 0 ? options.context : model.info().context;
  scheduling.micro_batch = options.micro_batch;
  scheduling.cache_bytes = static_cast<std::size_t>(arguments.cache_mb) << 20U;
  server::AppSettings app = arguments.app;
  app.timeout = std::chrono::seconds(arguments.timeout_seconds);
  if (app.model_name.empty()) app.model_name = std::filesystem::path(arguments.model.path).stem();
  make_folder(app.slot_folder);
  const Policy policy = arguments.policy.make(model, options, scheduling.context);
  spdlog::info("{}: {} tokens of context, {} slots, {}", app.model_name, scheduling.context, scheduling.parallel,
               policy.description());
  return std::make_shared<server::App>(model, engine_settings(options), policy, scheduling, std::move(app));
}

void run(const ServeArguments& arguments) {
  spdlog::set_default_logger(spdlog::stderr_color_mt("razorkv"));
  server::HttpSettings http = arguments.http;
  http.api_keys = keys_of(arguments);
  http.max_body_bytes = static_cast<std::size_t>(arguments.body_mb) << 20U;
  http.threads = arguments.scheduling.parallel + arguments.scheduling.queue + 16;
  if (http.host != "127.0.0.1" && http.host != "localhost" && http.host != "::1" && http.api_keys.empty()) {
    spdlog::warn("listening on {} without --api-key: everybody who reaches it may use it", http.host);
  }
  InterruptScope interrupt;
  server::HttpServer server(http);
  server::add_all_routes(server);
  const int port = server.start();
  spdlog::info("listening on http://{}:{}", http.host, port);
  const std::shared_ptr<server::App> app = load(arguments);
  server.set_app(app);
  spdlog::info("ready");
  while (!InterruptScope::requested()) std::this_thread::sleep_for(std::chrono::milliseconds(100));
  spdlog::info("stopping; a second signal ends at once");
  app->scheduler.drain(std::chrono::seconds(arguments.grace_seconds));
  server.stop();
  spdlog::info("stopped");
}

}  // namespace

void add_serve_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("serve", "Serve the model over HTTP to OpenAI-style clients and a browser");
  const auto arguments = std::make_shared<ServeArguments>();
  arguments->session.micro_batch = 128;  // streams wait for one micro-batch at most while another prompt is read
  arguments->model.add(*command);
  command->add_option("--host", arguments->http.host, "Address to listen on")->capture_default_str();
  command->add_option("--port", arguments->http.port, "0 = any that is free")
      ->check(CLI::Range(0, 65535))
      ->capture_default_str();
  command->add_option("--parallel", arguments->scheduling.parallel, "-np: answers generated at once")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  command->add_option("--queue", arguments->scheduling.queue, "Requests that may wait; more get status 429")
      ->check(CLI::Range(0, 4096))
      ->capture_default_str();
  command
      ->add_option(
          "--cache-ram", arguments->cache_mb,
          "MiB of KV pages above which kept states are forgotten, the least recently used first; 0 = keep none")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 24U))
      ->capture_default_str();
  command->add_option("--documents", arguments->app.document_folder, "Folder in which documents are saved")
      ->type_name("FOLDER");
  command
      ->add_option("--slot-save-path", arguments->app.slot_folder,
                   "Folder in which POST /slots/ID?action=save writes what a slot has kept")
      ->type_name("FOLDER");
  command->add_option("--alias", arguments->app.model_name, "Name of the model for clients (default: the file's)");
  command->add_option("--chat-template", arguments->app.chat_template, "Use this known template, not the model's");
  command->add_option("--api-key", arguments->http.api_keys, "Key that clients must send (may be repeated)")
      ->allow_extra_args(false);
  command->add_option("--api-key-file", arguments->api_key_file, "File with one key a line")->type_name("FILE");
  command
      ->add_option("--allow-origin", arguments->http.origins,
                   "Origin whose pages may use the server, such as https://example.org; * = all (may be repeated)")
      ->allow_extra_args(false);
  command->add_option("--max-body-mb", arguments->body_mb, "Largest request body, MiB")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  command->add_option("--timeout", arguments->timeout_seconds, "Seconds that an answer may take, waiting included")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  command->add_option("--grace", arguments->grace_seconds, "Seconds that running requests get at a shutdown")
      ->check(CLI::Range(0, 3600))
      ->capture_default_str();
  arguments->session.add(*command);
  arguments->policy.add(*command);
  command->callback([arguments] { run(*arguments); });
}

}  // namespace razorkv::cli
