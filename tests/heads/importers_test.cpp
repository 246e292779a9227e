#include "heads/importers.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "razorkv/error.h"
#include "support/test_files.h"

namespace razorkv {
namespace {

namespace fs = std::filesystem;

HeadShape shape_of(std::int64_t layers, std::int64_t heads, std::int64_t kv_heads) {
  HeadShape shape;
  shape.head_width = 8;
  for (std::int64_t layer = 0; layer < layers; ++layer) shape.layers.push_back({heads, kv_heads, false});
  return shape;
}

class Importers : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "razorkv-import-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string write(const std::string& name, const std::string& content) const {
    std::ofstream(folder_ / name) << content;
    return (folder_ / name).string();
  }
  fs::path folder_;
};

TEST_F(Importers, DuoFolderHasItsOwnSizes) {
  write("full_attention_heads.tsv", "0.5\t1.0e+00\r\n-0.25\t1.5\n0.5\t0.125\n");
  write("config.json", R"({"sink_size": 64, "recent_size": 256, "other": 1})");
  const DuoPattern pattern = read_duo_pattern(folder_.string());
  EXPECT_EQ(pattern.gates, (std::vector<std::vector<double>>{{.5, 1}, {0, 1}, {.5, .125}}));
  const HeadShape shape = shape_of(3, 4, 2);
  const HeadPlan plan = duo_plan(pattern, shape, 0.5);
  EXPECT_EQ(protected_heads(shape, plan), (std::vector<HeadId>{{0, 0}, {0, 1}, {1, 1}}));
  EXPECT_EQ(plan.rules[2][0], (HeadRule{false, 64, 256, 0, false}));
  EXPECT_EQ(duo_plan(pattern, shape, 0.5, 4, 100).rules[2][0], (HeadRule{false, 4, 100, 0, false}));
}

TEST_F(Importers, DuoSparsityCounts) {
  const std::string file = write("gates.tsv", "0.9\t0.1\n0.9\t0.9\n0.3\t0.2\n0.9\t0.0\n0.9\t0.5\n");
  const DuoPattern pattern = read_duo_pattern(file);
  const HeadShape shape = shape_of(5, 2, 2);
  EXPECT_EQ(duo_full_heads(pattern, shape, 0.0).size(), 10U);
  EXPECT_TRUE(duo_full_heads(pattern, shape, 1.0).empty());
  // The quantile 0.7 of 10 values lies between the 7th and 8th from below: three are above. The five 0.9 tie.
  EXPECT_EQ(duo_full_heads(pattern, shape, 0.7), (std::vector<HeadId>{{0, 0}, {1, 0}, {1, 1}}));
  EXPECT_EQ(duo_full_heads(pattern, shape, 5.0 / 9.0).size(), 5U);  // exactly the 6th value: it stays
  EXPECT_THROW(duo_full_heads(pattern, shape, 1.5), InvalidArgument);
  EXPECT_THROW(duo_full_heads(pattern, shape_of(4, 2, 2), 0.5), InvalidArgument);
  EXPECT_THROW(duo_full_heads(pattern, shape_of(5, 4, 4), 0.5), InvalidArgument);
  EXPECT_THROW(duo_plan(pattern, shape, 0.5), InvalidArgument);  // no config.json, no sizes
}

TEST_F(Importers, DuoRefusesBadTables) {
  for (const char* table :
       {"", "\n\n", "0.5\tx\n", "0.5\n0.5\t0.5\n", "0.5\t\t0.5\n", "nan\t1\n", "inf\t0\n", "0.5 0.5\n"}) {
    EXPECT_THROW(read_duo_pattern(write("t.tsv", table)), FileError) << table;
  }
  EXPECT_THROW(read_duo_pattern((folder_ / "missing.tsv").string()), FileError);
  EXPECT_THROW(read_duo_pattern(folder_.string()), FileError);
  write("full_attention_heads.tsv", "1\n");
  EXPECT_THROW(read_duo_pattern(folder_.string()), FileError);
  write("config.json", R"({"sink_size": -1, "recent_size": 2})");
  EXPECT_THROW(read_duo_pattern(folder_.string()), FileError);
}

TEST_F(Importers, DuoPatternOfLlama) {
  const std::string name = "heads/duo_Meta-Llama-3.1-8B-Instruct_full_attention_heads.tsv";
  const std::optional<std::string> file = test::data_file(name);
  if (!file) GTEST_SKIP() << test::missing_data(name);
  const DuoPattern pattern = read_duo_pattern(*file);
  const HeadShape shape = shape_of(32, 32, 8);
  const std::vector<HeadId> half = duo_full_heads(pattern, shape, 0.5);
  EXPECT_EQ(half.size(), 128U);
  double lowest = 1.0, highest = 0.0;
  for (std::int64_t layer = 0; layer < 32; ++layer) {
    for (std::int64_t head = 0; head < 8; ++head) {
      const double gate = pattern.gates[static_cast<std::size_t>(layer)][static_cast<std::size_t>(head)];
      const bool full = std::find(half.begin(), half.end(), HeadId{layer, head}) != half.end();
      (full ? lowest : highest) = full ? std::min(lowest, gate) : std::max(highest, gate);
    }
  }
  EXPECT_GE(lowest, highest);
  EXPECT_GT(lowest, 0.0);
}

TEST_F(Importers, HeadLists) {
  const HeadShape shape = shape_of(12, 4, 2);
  const HeadLists lists = read_head_lists(
      write("l.json", R"({"prefix_matching": {"11": [1, 0], "3": [1]}, "copying": {"3": [1], "2": [0]}})"), shape);
  EXPECT_EQ(lists.induction, (std::vector<HeadId>{{3, 1}, {11, 0}, {11, 1}}));
  EXPECT_EQ(lists.echo, (std::vector<HeadId>{{2, 0}, {3, 1}}));
  EXPECT_EQ(lists.all(), (std::vector<HeadId>{{2, 0}, {3, 1}, {11, 0}, {11, 1}}));
  EXPECT_EQ(read_head_lists(write("p.json", R"({"0": [1]})"), shape).all(), (std::vector<HeadId>{{0, 1}}));
  for (const char* bad : {"", "[]", R"({"12": [0]})", R"({"x": [0]})", R"({"1": [2]})", R"({"1": [-1]})", R"({"1": 0})",
                          R"({"1": ["0"]})", R"({"copying": {"12": [0]}})"}) {
    EXPECT_THROW(read_head_lists(write("b.json", bad), shape), FileError) << bad;
  }
}

}  // namespace
}  // namespace razorkv
