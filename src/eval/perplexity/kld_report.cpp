#include "eval/perplexity/kld_report.h"

#include <fmt/format.h>

#include "razorkv/version.h"

namespace razorkv {
namespace {

using nlohmann::json;

constexpr std::int64_t kFewTokens = 100;

double rate(std::int64_t tokens, double seconds) { return seconds > 0.0 ? static_cast<double>(tokens) / seconds : 0.0; }

std::string percentile_name(double fraction) {
  if (fraction >= 1.0) return "maximum";
  if (fraction <= 0.0) return "minimum";
  return fraction == 0.5 ? "median" : fmt::format("{:g}%", 100.0 * fraction);
}

std::string distance_name(std::size_t index) {
  return index + 1 < kDistances.size() ? fmt::format("{}–{}", kDistances[index], kDistances[index + 1] - 1)
                                       : fmt::format("{} on", kDistances[index]);
}

std::string main_table(const KldResult& result) {
  std::string out =
      "| policy | KV heads whole | KV bytes | share | share at the end | PPL | PPL ratio | mean KLD | 99.9% KLD | "
      "same top, % | tokens/s |\n|---|---|---|---|---|---|---|---|---|---|---|\n";
  for (const KldColumn& column : result.columns) {
    const DivergenceSummary& all = column.all;
    out += fmt::format(
        "| {} | {} | {} | {:.3f} | {} | {:.4f} ± {:.4f} | {:.5f} ± {:.5f} | {:.6f} ± {:.6f} | {:.4f} | "
        "{:.3f} ± {:.3f} | {:.1f} |\n",
        column.name, heads_text(column), column.kv_bytes, share(column.kv_bytes, result.uncompressed_bytes),
        result.uncompressed_end_bytes == 0
            ? "-"
            : fmt::format("{:.3f}", share(column.kv_end_bytes, result.uncompressed_end_bytes)),
        all.perplexity.value, all.perplexity.error, all.ratio.value, all.ratio.error, all.kld.value, all.kld.error,
        all.kld_percentiles[1], 100.0 * all.same_top.value, 100.0 * all.same_top.error,
        rate(result.scored, column.score_seconds));
  }
  return out;
}

std::string percentile_table(const KldResult& result) {
  std::string out = "\nPercentiles of KLD:\n\n| policy |";
  for (const double fraction : kPercentiles) out += fmt::format(" {} |", percentile_name(fraction));
  out += " RMS Δp, % |\n|---|";
  for (std::size_t i = 0; i <= kPercentiles.size(); ++i) out += "---|";
  out += '\n';
  for (const KldColumn& column : result.columns) {
    out += fmt::format("| {} |", column.name);
    for (const double value : column.all.kld_percentiles) out += fmt::format(" {:.6f} |", value);
    out += fmt::format(" {:.3f} ± {:.3f} |\n", 100.0 * column.all.p_change_rms.value,
                       100.0 * column.all.p_change_rms.error);
  }
  return out;
}

std::string distance_table(const KldResult& result) {
  std::string out =
      "\nBy distance from the compression point, tokens:\n\n| policy | distance | tokens | PPL ratio | mean KLD | "
      "99.9% "
      "KLD | same top, % |\n|---|---|---|---|---|---|---|\n";
  for (const KldColumn& column : result.columns) {
    for (std::size_t d = 0; d < kDistances.size(); ++d) {
      const DivergenceSummary& part = column.by_distance[d];
      if (part.count == 0) continue;
      out += fmt::format("| {} | {} | {} | {:.5f} | {:.6f} | {:.4f} | {:.2f} |\n", column.name, distance_name(d),
                         part.count, part.ratio.value, part.kld.value, part.kld_percentiles[1],
                         100.0 * part.same_top.value);
    }
  }
  return out;
}

json estimate(const Estimate& of) { return {{"value", of.value}, {"error", of.error}}; }

json summary_json(const DivergenceSummary& summary) {
  json kld;
  json change;
  for (std::size_t i = 0; i < kPercentiles.size(); ++i) {
    kld[percentile_name(kPercentiles[i])] = summary.kld_percentiles[i];
    change[percentile_name(kPercentiles[i])] = summary.p_change_percentiles[i];
  }
  return {{"tokens", summary.count},
          {"perplexity", estimate(summary.perplexity)},
          {"perplexity_base", estimate(summary.perplexity_base)},
          {"correlation", summary.correlation},
          {"log_ratio", estimate(summary.log_ratio)},
          {"ratio", estimate(summary.ratio)},
          {"difference", estimate(summary.difference)},
          {"kld", estimate(summary.kld)},
          {"kld_percentiles", kld},
          {"probability_change", estimate(summary.p_change)},
          {"probability_change_rms", estimate(summary.p_change_rms)},
          {"probability_change_percentiles", change},
          {"same_top", estimate(summary.same_top)}};
}

}  // namespace

std::string kld_markdown(const TextRunFacts& facts, const KldResult& result) {
  std::string out =
      fmt::format("{}, {}, {} chunks of {} tokens: first half read, compressed, {} tokens of second halves scored\n\n",
                  facts.model_name, facts.text, result.chunks, facts.context, result.scored);
  if (!facts.base.empty()) out += fmt::format("Base: the log-probabilities of {}.\n\n", facts.base);
  if (result.scored < kFewTokens) {
    return out + fmt::format("{} tokens are too few for statistics; {} are needed.\n", result.scored, kFewTokens);
  }
  return out + main_table(result) + percentile_table(result) + distance_table(result);
}

json kld_json(const TextRunFacts& facts, const KldResult& result) {
  json columns = json::array();
  for (const KldColumn& column : result.columns) {
    json out = policy_facts_json(column);
    json distances = json::array();
    for (std::size_t d = 0; d < kDistances.size(); ++d) {
      if (column.by_distance[d].count == 0) continue;
      json part = summary_json(column.by_distance[d]);
      part["from"] = kDistances[d];
      distances.push_back(std::move(part));
    }
    const json measured = {{"kv_bytes", column.kv_bytes},
                           {"kv_bytes_after_decoding", column.kv_end_bytes},
                           {"kv_share", share(column.kv_bytes, result.uncompressed_bytes)},
                           {"tokens_per_second", rate(result.scored, column.score_seconds)},
                           {"all", summary_json(column.all)},
                           {"by_distance", distances}};
    out.update(measured);
    columns.push_back(std::move(out));
  }
  return {{"task", "kld"},
          {"protocol", "prefix, compress, score"},
          {"engine_version", version()},
          {"model", facts.model_name},
          {"model_sha256", facts.model_sha256},
          {"text", facts.text},
          {"base", facts.base},
          {"context", facts.context},
          {"chunks", result.chunks},
          {"scored", result.scored},
          {"kv_type", facts.kv_type == KvType::f32 ? "f32" : "f16"},
          {"kv_bytes_uncompressed", result.uncompressed_bytes},
          {"kv_bytes_uncompressed_after_decoding", result.uncompressed_end_bytes},
          {"prefill_seconds", result.prefill_seconds},
          {"columns", columns}};
}

}  // namespace razorkv
