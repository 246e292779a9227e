#include <string>

#include "server/api_error.h"
#include "server/json_request.h"
#include "server/routes.h"
#include "server/slot_files.h"

namespace razorkv::server {
namespace {

using nlohmann::json;

std::size_t slot_number(const std::string& text) {
  if (text.size() > 6) throw ApiError(404, "there is no slot " + text, "id_slot");
  return static_cast<std::size_t>(std::stoul(text));
}

json report(std::size_t slot, const SlotAction& done, const char* tokens, const char* bytes, const char* time) {
  return {{"id_slot", slot}, {tokens, done.tokens}, {bytes, done.bytes}, {"timings", {{time, 1e3 * done.seconds}}}};
}

void act(App& app, const httplib::Request& http, httplib::Response& response) {
  const std::size_t slot = slot_number(http.matches[1]);
  const std::string action = http.get_param_value("action");
  if (action == "erase") {
    send_json(response, {{"id_slot", slot}, {"n_erased", erase_slot(app.scheduler, slot).tokens}});
    return;
  }
  if (action != "save" && action != "restore") {
    throw ApiError(400, "action: expected save, restore or erase, found \"" + action + "\"", "action", "invalid_value");
  }
  const json value = parse_request(http.body);
  const std::string name = RequestField(value).at("filename").string();
  const std::string path = slot_file(app.settings.slot_folder, name);
  json out = action == "save"
                 ? report(slot, save_slot(app.scheduler, slot, path), "n_saved", "n_written", "save_ms")
                 : report(slot, restore_slot(app.scheduler, slot, path), "n_restored", "n_read", "restore_ms");
  out["filename"] = name;
  send_json(response, out);
}

}  // namespace

void add_slot_routes(HttpServer& server) { server.post("/slots/([0-9]+)", act); }

}  // namespace razorkv::server
