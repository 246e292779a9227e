// The page in web/, embedded at build time.
#pragma once

#include <span>
#include <string_view>

#include "server/http_server.h"

namespace razorkv::server {

struct PageFile {
  std::string_view path;  ///< as asked for, with the slash
  std::string_view type;  ///< MIME type
  std::string_view content;
};

/// Made by cmake/RazorkvEmbed.cmake.
std::span<const PageFile> page_files();

/// Serves the page at "/". It loads nothing from elsewhere, and browsers are told so.
void add_page_routes(HttpServer& server);

}  // namespace razorkv::server
