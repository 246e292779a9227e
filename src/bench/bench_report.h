// The result of a benchmark as Markdown, CSV and JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "bench/bench_run.h"

namespace razorkv::bench {

struct BenchFacts {
  std::string model;   ///< name
  std::string policy;  ///< description
  int threads = 0;
  int repetitions = 0;
  KvType kv_type = KvType::f16;
  double bandwidth = 0.0;  ///< bytes/s, by memory_bandwidth()
};

/// Speeds are means +- deviations; ratios to libllama are of medians.
std::string bench_markdown(const BenchFacts& facts, const BenchResult& result);
std::string bench_csv(const BenchFacts& facts, const BenchResult& result);
nlohmann::json bench_json(const BenchFacts& facts, const BenchResult& result);

}  // namespace razorkv::bench
