#include "eval/policy_column.h"

#include <gtest/gtest.h>

#include "razorkv/error.h"

namespace razorkv {
namespace {

TEST(PolicyColumns, WordsBecomeOptions) {
  PolicyOptions base;
  base.window = 7;
  const std::vector<PolicyColumn> columns = parse_policy_columns(
      "full,none,all,razor:safe,razor:1:0;2:1,razor-nocomp:0.3+0.02,random:paper:3,random:15:2,streaming-llm", base);
  ASSERT_EQ(columns.size(), 9U);
  const auto expect = [&](std::size_t i, const char* policy, const char* heads) {
    EXPECT_EQ(columns[i].options.policy, policy) << i;
    EXPECT_EQ(columns[i].options.heads, heads) << i;
    EXPECT_EQ(columns[i].options.window, 7);
  };
  expect(0, "full", "wide");
  expect(1, "razor", "none");
  expect(2, "razor", "all");
  expect(3, "razor", "safe");
  expect(4, "razor", "1:0,2:1");
  expect(5, "razor-nocomp", "0.3+0.02");
  expect(6, "random", "random:3:paper");
  expect(7, "random", "random:2:15");
  expect(8, "streaming-llm", "wide");
  EXPECT_EQ(columns[6].name, "random:paper:3");
}

TEST(PolicyColumns, SizesStandBehindTheWord) {
  PolicyOptions base;
  base.window = 7;
  const std::vector<PolicyColumn> columns = parse_policy_columns(
      "snapkv@0.33,h2o@512,pyramidkv@0.5,razor+snapkv:safe@0.33,razor+h2o:1:0;2:1@64,"
      "streaming-llm@0.2,razor:wide@0.2,random:15:2@0.2",
      base);
  ASSERT_EQ(columns.size(), 8U);
  const auto expect = [&](std::size_t i, const char* policy, double share, std::int64_t rows, const char* heads) {
    EXPECT_EQ(columns[i].options.policy, policy) << i;
    EXPECT_EQ(columns[i].options.budget_share, share) << i;
    EXPECT_EQ(columns[i].options.rows, rows) << i;
    EXPECT_EQ(columns[i].options.heads, heads) << i;
  };
  expect(0, "snapkv", 0.33, 0, "wide");
  expect(1, "h2o", 0.0, 512, "wide");
  expect(2, "pyramidkv", 0.5, 0, "wide");
  expect(3, "razor+snapkv", 0.33, 0, "safe");
  expect(4, "razor+h2o", 0.0, 64, "1:0,2:1");
  expect(5, "streaming-llm", 0.2, 0, "wide");
  expect(6, "razor", 0.2, 0, "wide");
  expect(7, "random", 0.2, 0, "random:2:15");
  EXPECT_EQ(columns[3].name, "razor+snapkv:safe@0.33");
  EXPECT_EQ(columns[6].options.window, 7);
  EXPECT_GT(columns[5].options.window, 1'000'000'000);  // as wide as the share allows
}

TEST(PolicyColumns, UnknownWordsAreRefused) {
  for (const char* text : {"",
                           "magic",
                           "full,",
                           "full,full",
                           "razor",
                           "razor:",
                           "razor:best",
                           "random:3",
                           "random:x:1",
                           "full:wide",
                           "none:1",
                           "snapkv@",
                           "snapkv@0.0",
                           "snapkv@1.5",
                           "snapkv@-3",
                           "snapkv@0.3x",
                           "snapkv:safe@0.3",
                           "razor+snapkv@0.3",
                           "razor+pyramidkv:safe@0.3",
                           "h2o@12@3"}) {
    EXPECT_THROW(parse_policy_columns(text, {}), InvalidArgument) << text;
  }
}

}  // namespace
}  // namespace razorkv
