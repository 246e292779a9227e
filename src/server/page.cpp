#include "server/page.h"

#include <string>

namespace razorkv::server {

void add_page_routes(HttpServer& server) {
  for (const PageFile& file : page_files()) {
    server.get_open(std::string(file.path), [file](const httplib::Request&, httplib::Response& response) {
      response.set_header("Content-Security-Policy",
                          "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
                          "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'");
      response.set_header("X-Content-Type-Options", "nosniff");
      response.set_header("Referrer-Policy", "no-referrer");
      response.set_header("Cache-Control", "no-cache");
      response.set_content(file.content.data(), file.content.size(), std::string(file.type));
    });
  }
}

}  // namespace razorkv::server
