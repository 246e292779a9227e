// What the server answers, by path.
#pragma once

#include "server/http_server.h"

namespace razorkv::server {

/// /health, /v1/models, /props, /slots, /metrics, /tokenize, /detokenize, /apply-template.
void add_native_routes(HttpServer& server);
/// /v1/chat/completions and /v1/completions, also without /v1.
void add_completion_routes(HttpServer& server);
/// /slots/ID?action=save|restore|erase.
void add_slot_routes(HttpServer& server);
/// /v1/documents.
void add_document_routes(HttpServer& server);

void add_all_routes(HttpServer& server);

}  // namespace razorkv::server
