#include "cli/report.h"

#include <fmt/format.h>

#include <cstdio>

namespace razorkv::cli {
namespace {

double rate(std::int64_t tokens, double seconds) { return seconds > 0.0 ? static_cast<double>(tokens) / seconds : 0.0; }

}  // namespace

std::string byte_text(std::size_t bytes) {
  const auto value = static_cast<double>(bytes);
  if (bytes < 1024U) return fmt::format("{} B", bytes);
  if (value < 1024.0 * 1024.0) return fmt::format("{:.1f} KiB", value / 1024.0);
  if (value < 1024.0 * 1024.0 * 1024.0) return fmt::format("{:.1f} MiB", value / (1024.0 * 1024.0));
  return fmt::format("{:.2f} GiB", value / (1024.0 * 1024.0 * 1024.0));
}

std::string closing_line(const SessionStatistics& statistics) {
  return fmt::format(
      "prefill {} tokens, {:.1f} tokens/s | decode {} tokens, {:.1f} tokens/s | KV {} (peak {}, uncompressed {})",
      statistics.prefill_tokens, rate(statistics.prefill_tokens, statistics.prefill_seconds), statistics.decode_tokens,
      rate(statistics.decode_tokens, statistics.decode_seconds), byte_text(statistics.kv_bytes),
      byte_text(statistics.kv_peak_bytes), byte_text(statistics.kv_uncompressed_bytes));
}

nlohmann::json statistics_json(const SessionStatistics& statistics) {
  return {{"context_tokens", statistics.tokens},
          {"prefill_tokens", statistics.prefill_tokens},
          {"prefill_seconds", statistics.prefill_seconds},
          {"prefill_tokens_per_second", rate(statistics.prefill_tokens, statistics.prefill_seconds)},
          {"decode_tokens", statistics.decode_tokens},
          {"decode_seconds", statistics.decode_seconds},
          {"decode_tokens_per_second", rate(statistics.decode_tokens, statistics.decode_seconds)},
          {"compress_seconds", statistics.compress_seconds},
          {"kv_bytes", statistics.kv_bytes},
          {"kv_row_bytes", statistics.kv_row_bytes},
          {"kv_peak_bytes", statistics.kv_peak_bytes},
          {"kv_uncompressed_bytes", statistics.kv_uncompressed_bytes},
          {"compute_bytes", statistics.compute_bytes}};
}

void print_json(const nlohmann::json& document) {
  const std::string text = document.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fputc('\n', stdout);
  std::fflush(stdout);
}

void print_note(const std::string& line) {
  std::fflush(stdout);
  std::fprintf(stderr, "%s\n", line.c_str());
}

}  // namespace razorkv::cli
