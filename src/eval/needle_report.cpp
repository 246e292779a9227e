#include "eval/needle_report.h"

#include <fmt/format.h>

#include <cmath>

#include "razorkv/version.h"

namespace razorkv {
namespace {

using nlohmann::json;

const char* type_name(KvType type) { return type == KvType::f32 ? "f32" : "f16"; }

std::string missed_depths(const NeedleTask& task, const NeedleColumn& column) {
  std::string out;
  for (std::size_t i = 0; i < task.needles.size(); ++i) {
    if (!column.answers[i].found) out += fmt::format("{}{:g}", out.empty() ? "" : ", ", task.needles[i].depth);
  }
  return out.empty() ? "-" : out;
}

json column_json(const NeedleTask& task, const NeedleColumn& column, const NeedleResult& result) {
  const auto samples = static_cast<double>(column.answers.size());
  const double mean = samples > 0.0 ? static_cast<double>(column.found) / samples : 0.0;
  const double half = samples > 0.0 ? 1.96 * std::sqrt(mean * (1.0 - mean) / samples) : 0.0;
  json answers = json::array();
  const NeedleColumn* full = nullptr;
  for (const NeedleColumn& other : result.columns) {
    if (other.policy == "full") full = &other;
  }
  std::int64_t lost = 0;
  std::int64_t won = 0;
  for (std::size_t i = 0; i < column.answers.size(); ++i) {
    const NeedleAnswer& answer = column.answers[i];
    if (full != nullptr && full->answers[i].found != answer.found) ++(answer.found ? won : lost);
    answers.push_back({{"depth", task.needles[i].depth},
                       {"city", task.needles[i].city},
                       {"expected", task.needles[i].digits},
                       {"answer", answer.text},
                       {"found", answer.found}});
  }
  json out = policy_facts_json(column);
  const json measured = {{"kv_bytes", column.kv_bytes},
                         {"kv_row_bytes", column.kv_row_bytes},
                         {"kv_bytes_after_decoding", column.kv_end_bytes},
                         {"kv_share", share(column.kv_bytes, result.uncompressed_bytes)},
                         {"compress_seconds", column.compress_seconds},
                         {"answer_seconds", column.answer_seconds},
                         {"found", column.found},
                         {"samples", column.answers.size()},
                         {"mean", mean},
                         {"interval_95", {mean - half, mean + half}},
                         {"answers", answers}};
  out.update(measured);
  if (full != nullptr) out["against_full"] = {{"lost", lost}, {"won", won}};
  return out;
}

}  // namespace

std::string needle_markdown(const NeedleFacts& facts, const NeedleTask& task, const NeedleResult& result) {
  std::string out = fmt::format(
      "{}, {} tokens ({} of {} from character {}), {} needles, seed {}, question after compression\n\n"
      "| policy | KV heads kept whole | window of the others | KV bytes | share | needles found | missed depths, % |\n"
      "|---|---|---|---|---|---|---|\n",
      facts.model_name, facts.length, task.haystack_tokens, facts.haystack, facts.from, task.needles.size(),
      facts.seed);
  for (const NeedleColumn& column : result.columns) {
    out += fmt::format("| {} | {} | {} | {} | {:.3f} | {} of {} | {} |\n", column.name, heads_text(column),
                       window_text(column), column.kv_bytes, share(column.kv_bytes, result.uncompressed_bytes),
                       column.found, column.answers.size(), missed_depths(task, column));
  }
  return out;
}

json needle_json(const NeedleFacts& facts, const NeedleTask& task, const NeedleResult& result) {
  json columns = json::array();
  for (const NeedleColumn& column : result.columns) columns.push_back(column_json(task, column, result));
  json depths = json::array();
  for (const Needle& needle : task.needles) depths.push_back(needle.depth);
  return {{"task", "needle"},
          {"prompt", "chatml, eleven cities, seven digits"},
          {"protocol", "P2: context, compression, question"},
          {"engine_version", version()},
          {"model", facts.model_name},
          {"model_sha256", facts.model_sha256},
          {"haystack", facts.haystack},
          {"haystack_from", facts.from},
          {"haystack_tokens", task.haystack_tokens},
          {"length", facts.length},
          {"depths", depths},
          {"seed", facts.seed},
          {"new_tokens", facts.new_tokens},
          {"kv_type", type_name(facts.kv_type)},
          {"kv_bytes_uncompressed", result.uncompressed_bytes},
          {"prefill_seconds", result.prefill_seconds},
          {"columns", columns}};
}

}  // namespace razorkv
