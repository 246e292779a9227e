#include "bench/bench_report.h"

#include <fmt/format.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "bench/growth.h"
#include "bench/statistics.h"

namespace razorkv::bench {
namespace {

const char* type_name(KvType type) { return type == KvType::f32 ? "f32" : "f16"; }

bool has_llama(const BenchResult& result) { return !result.rows.empty() && !result.rows.front().llama[0].empty(); }

/// Bytes of KV rows read per second.
double kv_rate(const BenchRow& row) { return row.kv_read * median(row.speed); }

double ratio(const BenchRow& row, std::size_t flash) { return median(row.speed) / median(row.llama[flash]); }

std::string speed_text(const std::vector<double>& values) {
  return fmt::format("{:.2f} ± {:.2f}", mean(values), deviation(values));
}

// Numbers of decoded tokens that were measured.
std::set<std::int64_t> answers(const BenchResult& result) {
  std::set<std::int64_t> tokens;
  for (const BenchRow& row : result.rows) {
    if (!row.test.prefill) tokens.insert(row.test.tokens);
  }
  return tokens;
}

}  // namespace

std::string bench_markdown(const BenchFacts& facts, const BenchResult& result) {
  const bool llama = has_llama(result);
  std::string text =
      fmt::format("{}, {} threads, {} repetitions, {} KV, {}. Memory: {:.1f} GB/s.\n\n", facts.model, facts.threads,
                  facts.repetitions, type_name(facts.kv_type), facts.policy, facts.bandwidth / 1e9);
  text += "| test | t/s | KV MiB | KV GB/s | of memory |";
  if (llama) text += " llama.cpp, fa off | fa on | ratio to off | to on |";
  text += "\n|---|---:|---:|---:|---:|";
  if (llama) text += "---:|---:|---:|---:|";
  text += "\n";
  for (const BenchRow& row : result.rows) {
    text += fmt::format("| {} | {} | {:.1f} |", row.test.name(), speed_text(row.speed),
                        static_cast<double>(row.kv_bytes) / 1048576.0);
    if (row.kv_read > 0.0) {
      text += fmt::format(" {:.2f} | {:.0f}% |", kv_rate(row) / 1e9, 100.0 * kv_rate(row) / facts.bandwidth);
    } else {
      text += " | |";
    }
    if (llama) {
      text += fmt::format(" {} | {} | {:.2f} | {:.2f} |", speed_text(row.llama[0]), speed_text(row.llama[1]),
                          ratio(row, 0), ratio(row, 1));
    }
    text += "\n";
  }
  for (const std::int64_t tokens : answers(result)) {
    const std::optional<Growth> growth = decode_growth(result, tokens);
    if (!growth) continue;
    text += fmt::format(
        "\ntg{}: {:.1f} ms a token and the KV rows at {:.2f} GB/s, {:.0f}% of memory (line through the depths, R² "
        "{:.3f}).\n",
        tokens, 1e3 * growth->base, growth->rate / 1e9, 100.0 * growth->rate / facts.bandwidth, growth->fit);
  }
  if (llama) {
    text += fmt::format(
        "\nLogits after the first micro-batch differ from llama.cpp's by {:.1e} of their size; llama.cpp's own, with "
        "and without flash attention, by {:.1e}.\n",
        result.logit_distance[0], result.logit_distance[1]);
  }
  return text;
}

std::string bench_csv(const BenchFacts& facts, const BenchResult& result) {
  const bool llama = has_llama(result);
  std::string text =
      "test,n_prompt,n_gen,n_depth,threads,kv_type,avg_ts,stddev_ts,kv_bytes,kv_bytes_per_second,memory_share";
  if (llama) text += ",llama_fa_off_ts,llama_fa_on_ts,ratio_fa_off,ratio_fa_on";
  text += "\n";
  for (const BenchRow& row : result.rows) {
    const BenchTest& test = row.test;
    text +=
        fmt::format("{},{},{},{},{},{},{:.3f},{:.3f},{},{:.0f},{:.4f}", test.name(), test.prefill ? test.tokens : 0,
                    test.prefill ? 0 : test.tokens, test.depth, facts.threads, type_name(facts.kv_type),
                    mean(row.speed), deviation(row.speed), row.kv_bytes, kv_rate(row), kv_rate(row) / facts.bandwidth);
    if (llama) {
      text += fmt::format(",{:.3f},{:.3f},{:.4f},{:.4f}", mean(row.llama[0]), mean(row.llama[1]), ratio(row, 0),
                          ratio(row, 1));
    }
    text += "\n";
  }
  return text;
}

nlohmann::json bench_json(const BenchFacts& facts, const BenchResult& result) {
  nlohmann::json document{{"model", facts.model},
                          {"policy", facts.policy},
                          {"threads", facts.threads},
                          {"kv_type", type_name(facts.kv_type)},
                          {"memory_bytes_per_second", facts.bandwidth}};
  const bool llama = has_llama(result);
  if (llama) document["logit_distance"] = {{"razorkv", result.logit_distance[0]}, {"flash", result.logit_distance[1]}};
  document["tests"] = nlohmann::json::array();
  for (const BenchRow& row : result.rows) {
    const BenchTest& test = row.test;
    nlohmann::json one{{"test", test.name()},
                       {"n_prompt", test.prefill ? test.tokens : 0},
                       {"n_gen", test.prefill ? 0 : test.tokens},
                       {"n_depth", test.depth},
                       {"avg_ts", mean(row.speed)},
                       {"stddev_ts", deviation(row.speed)},
                       {"median_ts", median(row.speed)},
                       {"samples_ts", row.speed},
                       {"kv_bytes", row.kv_bytes}};
    if (row.kv_read > 0.0) {
      one["kv_bytes_per_second"] = kv_rate(row);
      one["memory_share"] = kv_rate(row) / facts.bandwidth;
    }
    for (const std::size_t flash : {0U, 1U}) {
      if (!llama) continue;
      one[flash == 1 ? "llama_fa_on" : "llama_fa_off"] = {
          {"samples_ts", row.llama[flash]}, {"median_ts", median(row.llama[flash])}, {"ratio", ratio(row, flash)}};
    }
    document["tests"].push_back(std::move(one));
  }
  document["growth"] = nlohmann::json::array();
  for (const std::int64_t tokens : answers(result)) {
    const std::optional<Growth> growth = decode_growth(result, tokens);
    if (!growth) continue;
    document["growth"].push_back({{"n_gen", tokens},
                                  {"base_seconds", growth->base},
                                  {"kv_bytes_per_second", growth->rate},
                                  {"memory_share", growth->rate / facts.bandwidth},
                                  {"r_squared", growth->fit}});
  }
  return document;
}

}  // namespace razorkv::bench
