// What razorkv ask says about its work.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "cli/document_session.h"

namespace razorkv::cli {

/// "answer 12 tokens, 21.3 tokens/s | question 19 tokens, 150.2 tokens/s".
std::string answer_line(const Answer& answer);

/// Reading speed, time of compression, cache against uncompressed cache, page slack, resident memory. `loaded`: the
/// document came from a state file.
std::string document_lines(const DocumentSession& document, bool loaded);

nlohmann::json answer_json(const Answer& answer);
nlohmann::json document_json(const DocumentSession& document, bool loaded);

}  // namespace razorkv::cli
