#include "cli/ask_report.h"

#include <fmt/format.h>

#include "cli/report.h"

namespace razorkv::cli {
namespace {

double rate(std::int64_t tokens, double seconds) { return seconds > 0.0 ? static_cast<double>(tokens) / seconds : 0.0; }

}  // namespace

std::string answer_line(const Answer& answer) {
  const SessionStatistics& s = answer.statistics;
  return fmt::format("answer {} tokens, {:.1f} tokens/s | question {} tokens, {:.1f} tokens/s",
                     answer.generated.tokens.size(), rate(s.decode_tokens, s.decode_seconds), s.prefill_tokens,
                     rate(s.prefill_tokens, s.prefill_seconds));
}

std::string document_lines(const DocumentSession& document, bool loaded) {
  const SessionStatistics& s = document.document();
  std::string out = loaded ? fmt::format("document {} tokens, from the saved state", s.tokens)
                           : fmt::format("document {} tokens, prefill {:.1f} tokens/s, compressed in {:.3f} s",
                                         s.tokens, rate(s.prefill_tokens, s.prefill_seconds), s.compress_seconds);
  const double share = s.kv_uncompressed_bytes > 0
                           ? static_cast<double>(s.kv_bytes) / static_cast<double>(s.kv_uncompressed_bytes)
                           : 0.0;
  out += fmt::format("\nKV {} allocated, {:.2f} of the uncompressed {}, page slack {}", byte_text(s.kv_bytes), share,
                     byte_text(s.kv_uncompressed_bytes), byte_text(s.kv_bytes - s.kv_row_bytes));
  if (document.memory_after().resident > 0) {
    out += fmt::format("\nresident memory {} before {}, {} after (not from files: {}, {})",
                       byte_text(document.memory_before().resident), loaded ? "loading" : "compression",
                       byte_text(document.memory_after().resident), byte_text(document.memory_before().anonymous),
                       byte_text(document.memory_after().anonymous));
  }
  return out;
}

nlohmann::json answer_json(const Answer& answer) {
  return {{"text", answer.generated.text},
          {"tokens", answer.generated.tokens},
          {"finish_reason", finish_reason_name(answer.generated.reason)},
          {"statistics", statistics_json(answer.statistics)}};
}

nlohmann::json document_json(const DocumentSession& document, bool loaded) {
  const auto memory = [](const ProcessMemory& m) {
    return nlohmann::json{{"resident", m.resident}, {"anonymous", m.anonymous}, {"peak", m.peak}};
  };
  return {{"tokens", document.document().tokens},
          {"loaded", loaded},
          {"statistics", statistics_json(document.document())},
          {"memory_before_compression", memory(document.memory_before())},
          {"memory_after_compression", memory(document.memory_after())}};
}

}  // namespace razorkv::cli
