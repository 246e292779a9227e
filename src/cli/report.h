// What a command says about its work: a closing line for people, or JSON.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "razorkv/session.h"

namespace razorkv::cli {

/// "12.3 MiB".
std::string byte_text(std::size_t bytes);

/// "prefill 512 tokens, 820.1 tokens/s | decode 64 tokens, 95.2 tokens/s | KV 12.0 MiB (peak 48.0 MiB, uncompressed
/// 48.0 MiB)".
std::string closing_line(const SessionStatistics& statistics);

nlohmann::json statistics_json(const SessionStatistics& statistics);

/// Prints one JSON document on stdout; bytes that are not UTF-8 become U+FFFD.
void print_json(const nlohmann::json& document);

/// Prints a line on stderr, behind whatever stdout has been given.
void print_note(const std::string& line);

}  // namespace razorkv::cli
