#include "bench/bench_run.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "bench/matmul_table.h"
#include "engine/session_fixture.h"
#include "razorkv/error.h"

namespace razorkv::test {
namespace {

using bench::BenchResult;
using bench::BenchRow;
using bench::BenchSettings;
using bench::run_bench;

BenchSettings settings() {
  BenchSettings out;
  out.session = one_thread();
  out.prompts = {40};
  out.answers = {3};
  out.depths = {64, 0, 64};
  out.repetitions = 2;
  return out;
}

std::vector<std::string> names(const BenchResult& result) {
  std::vector<std::string> out;
  for (const BenchRow& row : result.rows) out.push_back(row.test.name());
  return out;
}

TEST(BenchRun, RowsComeByDepthWithOneSpeedARepetition) {
  const Model model = tiny_public_model();
  const BenchResult result = run_bench(model, Policy::full(model), settings(), {});
  EXPECT_EQ(names(result), (std::vector<std::string>{"pp40", "tg3", "pp40 @ d64", "tg3 @ d64"}));
  for (const BenchRow& row : result.rows) {
    ASSERT_EQ(row.speed.size(), 2U);
    for (const double speed : row.speed) EXPECT_TRUE(speed > 0.0) << row.test.name();
    EXPECT_TRUE(row.llama[0].empty());
    EXPECT_GT(row.kv_bytes, 0U);
    EXPECT_EQ(row.kv_read > 0.0, !row.test.prefill);
  }
}

TEST(BenchRun, CountsTheRowsThatTheCacheHolds) {
  const Model model = tiny_public_model();
  const TinyOptions options;
  const std::int64_t row_bytes = 2 * 2 * options.layers * options.kv_heads * options.head_width;  // K and V, f16
  BenchSettings wanted = settings();
  wanted.depths = {64};
  const BenchResult full = run_bench(model, Policy::full(model), wanted, {});
  EXPECT_NEAR(full.rows[1].kv_read, 65.5 * static_cast<double>(row_bytes), 1.0);  // between 64 and 67 tokens
  const BenchResult compressed = run_bench(model, razor(model, 8), wanted, {});
  EXPECT_LT(compressed.rows[1].kv_read, 0.8 * full.rows[1].kv_read);
  const BenchResult streaming = run_bench(model, razor(model, 8, PrefillMode::streaming), wanted, {});
  EXPECT_NEAR(streaming.rows[1].kv_read, compressed.rows[1].kv_read, 1.0);
}

TEST(BenchRun, LibllamaRunsBesideAndComputesTheSame) {
  TinyOptions options;
  options.vocabulary = kTinyVocabulary;
  TinyGguf gguf(options);
  gguf.edit_metadata(set_tiny_vocabulary);
  const std::string path = gguf.write_temporary();
  const Model model = Model::load(path);
  BenchSettings wanted = settings();
  wanted.depths = {30};
  wanted.llama = path;
  const BenchResult result = run_bench(model, Policy::full(model), wanted, {});
  std::filesystem::remove(path);
  for (const BenchRow& row : result.rows) {
    EXPECT_EQ(row.llama[0].size(), 2U);
    EXPECT_EQ(row.llama[1].size(), 2U);
  }
  // f16 rows on both sides, summed in another order; flash attention rounds to f16 on the way.
  EXPECT_TRUE(result.logit_distance[0] < 1e-2) << result.logit_distance[0];
  EXPECT_TRUE(result.logit_distance[1] < 1e-2) << result.logit_distance[1];
}

TEST(BenchRun, BadSettingsAreRefused) {
  const Model model = tiny_public_model();
  const auto refused = [&](auto change) {
    BenchSettings wanted = settings();
    change(wanted);
    EXPECT_THROW(run_bench(model, Policy::full(model), wanted, {}), InvalidArgument);
  };
  refused([](BenchSettings& s) { s.repetitions = 0; });
  refused([](BenchSettings& s) { s.depths = {}; });
  refused([](BenchSettings& s) { s.depths = {-1}; });
  refused([](BenchSettings& s) { s.prompts = {-5}; });
  refused([](BenchSettings& s) { s.prompts = s.answers = {0}; });
  refused([&](BenchSettings& s) { s.depths = {model.info().context}; });
  EXPECT_THROW(run_bench(model, Policy::full(model), settings(), [](auto, auto) { return false; }), Cancelled);
}

TEST(MatmulTable, HasOneRowAKindOfWeight) {
  const std::string path =
      TinyGguf({.embedding = 64, .feed_forward = 96, .tied_output = true, .weight_type = GGML_TYPE_Q4_1})
          .write_temporary();
  const std::string table = bench::matmul_table(path, 20, 1);
  EXPECT_THROW(bench::matmul_table(path, 0, 1), InvalidArgument);
  std::filesystem::remove(path);
  EXPECT_NE(table.find("| ffn_down | q4_1 | 96 x 64 |"), std::string::npos) << table;
  EXPECT_EQ(table.find("nan"), std::string::npos) << table;
}

}  // namespace
}  // namespace razorkv::test
