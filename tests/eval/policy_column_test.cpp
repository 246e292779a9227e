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

TEST(PolicyColumns, UnknownWordsAreRefused) {
  for (const char* text : {"", "magic", "full,", "full,full", "razor", "razor:", "razor:best", "random:3", "random:x:1",
                           "full:wide", "none:1"}) {
    EXPECT_THROW(parse_policy_columns(text, {}), InvalidArgument) << text;
  }
}

}  // namespace
}  // namespace razorkv
