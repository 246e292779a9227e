#include <utility>

#include "razorkv/error.h"
#include "server/answer.h"
#include "server/completion_response.h"
#include "server/json_request.h"
#include "server/routes.h"

namespace razorkv::server {
namespace {

using nlohmann::json;

constexpr const char* kOne = "/v1/documents/([^/]+)";

json to_json(const DocumentInfo& info) {
  return {{"id", info.id},
          {"object", "document"},
          {"name", info.name},
          {"created", info.created},
          {"tokens", info.tokens},
          {"kv_bytes", info.kv_bytes},
          {"uncompressed_bytes", info.uncompressed_bytes},
          {"compressed", info.compressed},
          {"saved", info.saved},
          {"loaded", info.loaded}};
}

struct Reading {
  std::string id;
  std::string name;
  ClientWait client;
};

DocumentInfo keep(App& app, Reading& reading) {
  return app.documents.add(reading.id, reading.name, reading.client.generation().summary().state);
}

void create(App& app, const httplib::Request& http, httplib::Response& response) {
  const json value = parse_request(http.body);
  const RequestField request(value);
  const std::string text = request.at("text").string();
  const std::string name = request.string("name", "", 1024);
  const std::string system = request.string("system", "");
  const bool stream = request.boolean("stream", false);
  if (app.documents.list().size() >= app.settings.max_documents) {
    throw ApiError(400, "the server holds as many documents as it may; delete one first", {}, "too_many_documents");
  }
  GenerationRequest read;
  read.prompt = app.documents.prompt(text, system);
  const auto total = static_cast<std::int64_t>(read.prompt.size());
  const std::string id = Documents::new_id();
  read.base = id;
  read.conversation = true;
  read.reuse = false;
  read.client = http.remote_addr;
  const auto generation = app.scheduler.submit(std::move(read));
  const auto reading = std::make_shared<Reading>(Reading{id, name, ClientWait(generation, http)});
  if (!stream) {
    GenerationDelta none;
    while (reading->client.next(none) != Generation::Wait::finished) {
    }
    send_json(response, to_json(keep(app, *reading)));
    return;
  }
  send_events(response, generation, [&app, reading, total](const SendEvent& send) {
    GenerationDelta none;
    do {
      const json progress = {{"object", "document.progress"},
                             {"id", reading->id},
                             {"done", reading->client.generation().prefilled()},
                             {"total", total}};
      if (!send(to_text(progress))) throw Cancelled("the client has closed the connection");
    } while (reading->client.next(none) != Generation::Wait::finished);
    send(to_text(to_json(keep(app, *reading))));
  });
}

void list(App& app, const httplib::Request& /*http*/, httplib::Response& response) {
  json data = json::array();
  for (const DocumentInfo& info : app.documents.list()) data.push_back(to_json(info));
  send_json(response, {{"object", "list"}, {"data", std::move(data)}});
}

void show(App& app, const httplib::Request& http, httplib::Response& response) {
  send_json(response, to_json(app.documents.info(http.matches[1])));
}

void remove(App& app, const httplib::Request& http, httplib::Response& response) {
  const std::string id = http.matches[1];
  app.documents.remove(id);
  send_json(response, {{"id", id}, {"object", "document.deleted"}, {"deleted", true}});
}

}  // namespace

void add_document_routes(HttpServer& server) {
  server.post("/v1/documents", create);
  server.get("/v1/documents", list);
  server.get(kOne, show);
  server.remove(kOne, remove);
}

}  // namespace razorkv::server
