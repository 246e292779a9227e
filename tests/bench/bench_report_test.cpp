#include "bench/bench_report.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "bench/memory_bandwidth.h"
#include "bench/statistics.h"

namespace razorkv::bench {
namespace {

BenchResult example(bool llama) {
  BenchResult result;
  BenchRow prefill;
  prefill.test = {true, 512, 0};
  prefill.speed = {90.0, 110.0, 100.0};
  prefill.kv_bytes = 3U << 20U;
  BenchRow decode;
  decode.test = {false, 32, 4096};
  decode.speed = {10.0, 14.0, 12.0};
  decode.kv_bytes = 1U << 20U;
  decode.kv_read = 5e8;
  if (llama) {
    prefill.llama = {{{50.0, 50.0, 50.0}, {40.0, 20.0, 25.0}}};
    decode.llama = {{{8.0, 8.0, 8.0}, {3.0, 3.0, 3.0}}};
    result.logit_distance = {0.01, 0.02};
  }
  result.rows = {prefill, decode};
  return result;
}

BenchFacts facts() { return {"Tiny", "full: everything", 2, 3, KvType::f16, 2e10}; }

TEST(Statistics, MeanDeviationMedian) {
  EXPECT_DOUBLE_EQ(mean({1.0, 2.0, 6.0}), 3.0);
  EXPECT_DOUBLE_EQ(deviation({1.0, 2.0, 6.0}), std::sqrt(7.0));  // (4 + 1 + 9) / 2
  EXPECT_DOUBLE_EQ(deviation({5.0}), 0.0);
  EXPECT_DOUBLE_EQ(median({6.0, 1.0, 2.0}), 2.0);
  EXPECT_DOUBLE_EQ(median({6.0, 1.0, 2.0, 3.0}), 2.5);
}

TEST(BenchReport, NamesTestsAsLlamaBenchDoes) {
  EXPECT_EQ((BenchTest{true, 512, 0}.name()), "pp512");
  EXPECT_EQ((BenchTest{false, 128, 16384}.name()), "tg128 @ d16384");
}

TEST(BenchReport, MarkdownHasRatesSharesAndRatiosOfMedians) {
  const std::string plain = bench_markdown(facts(), example(false));
  EXPECT_NE(plain.find("| pp512 | 100.00 ± 10.00 | 3.0 | | |\n"), std::string::npos) << plain;
  // 5e8 bytes x 12 tokens/s = 6 GB/s of 20.
  EXPECT_NE(plain.find("| tg32 @ d4096 | 12.00 ± 2.00 | 1.0 | 6.00 | 30% |\n"), std::string::npos) << plain;
  EXPECT_EQ(plain.find("llama.cpp"), std::string::npos);
  const std::string beside = bench_markdown(facts(), example(true));
  EXPECT_NE(beside.find("| 50.00 ± 0.00 | 28.33 ± 10.41 | 2.00 | 4.00 |\n"), std::string::npos) << beside;
  EXPECT_NE(beside.find("| 1.50 | 4.00 |\n"), std::string::npos) << beside;
}

TEST(BenchReport, EveryLineOfCsvHasTheColumnsOfTheFirst) {
  for (const bool llama : {false, true}) {
    const std::string csv = bench_csv(facts(), example(llama));
    EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 3);
    EXPECT_EQ(std::count(csv.begin(), csv.end(), ','), 3 * (llama ? 14 : 10)) << csv;
    EXPECT_NE(csv.find("\ntg32 @ d4096,0,32,4096,2,f16,12.000,2.000,1048576,6000000000,0.3000"), std::string::npos);
  }
}

TEST(BenchReport, Json) {
  const nlohmann::json document = bench_json(facts(), example(true));
  const nlohmann::json& decode = document.at("tests").at(1);
  EXPECT_EQ(decode.at("n_depth"), 4096);
  EXPECT_EQ(decode.at("n_gen"), 32);
  EXPECT_EQ(decode.at("n_prompt"), 0);
  EXPECT_DOUBLE_EQ(decode.at("memory_share"), 0.3);
  EXPECT_DOUBLE_EQ(decode.at("llama_fa_off").at("ratio"), 1.5);
  EXPECT_DOUBLE_EQ(decode.at("llama_fa_on").at("ratio"), 4.0);
  EXPECT_FALSE(document.at("tests").at(0).contains("memory_share"));
  EXPECT_FALSE(bench_json(facts(), example(false)).contains("logit_distance"));
}

TEST(BenchReport, LaysALineThroughThreeDepths) {
  BenchResult result = example(false);
  EXPECT_EQ(bench_markdown(facts(), result).find("line through"), std::string::npos);
  EXPECT_TRUE(bench_json(facts(), result).at("growth").empty());
  // 10 ms and 10 GB/s.
  result.rows.clear();
  for (const double bytes : {0.0, 1e8, 3e8}) {
    BenchRow row;
    row.test = {false, 32, static_cast<std::int64_t>(bytes)};
    row.speed = {1.0 / (0.010 + bytes / 10e9)};
    row.kv_read = bytes;
    result.rows.push_back(row);
  }
  const std::string text = bench_markdown(facts(), result);
  EXPECT_NE(text.find("tg32: 10.0 ms a token and the KV rows at 10.00 GB/s, 50% of memory"), std::string::npos) << text;
  const nlohmann::json growth = bench_json(facts(), result).at("growth").at(0);
  EXPECT_EQ(growth.at("n_gen"), 32);
  EXPECT_NEAR(growth.at("base_seconds").get<double>(), 0.010, 1e-12);
  EXPECT_NEAR(growth.at("memory_share").get<double>(), 0.5, 1e-9);
}

TEST(MemoryBandwidth, IsAPositiveNumberForAnySplit) {
  for (const int threads : {1, 3}) {
    const double found = memory_bandwidth(threads, std::size_t{1} << 20U);
    EXPECT_TRUE(found > 1e6 && std::isfinite(found)) << found;
  }
}

}  // namespace
}  // namespace razorkv::bench
