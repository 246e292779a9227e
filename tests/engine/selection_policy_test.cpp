// Policies that choose rows by attention: names, sizes and byte budgets.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "engine/build_policy.h"
#include "engine/policy_choice.h"
#include "engine/policy_shape.h"
#include "razorkv/error.h"

namespace razorkv {
namespace {

using ::testing::HasSubstr;
using By = RowSelection::By;

using test::kRowBytes;

Policy::Impl built(const std::string& policy, const std::function<void(PolicyOptions&)>& edit) {
  PolicyOptions options;
  options.policy = policy;
  options.heads = "0:1,2:0";
  options.window = 100;
  options.window_divisor = 0;
  edit(options);
  return build_policy(test::policy_shape(), kRowBytes, options,
                      []() -> HeadProfile { throw FileError("the policy asked for a profile"); });
}

void third(PolicyOptions& options) {
  options.budget_share = 0.33;
  options.budget_tokens = 1000;
}

// The whole cache: 8 heads of 1000 rows and 2 of 50. A third of these 8100 rows, less the sliding 100, over 8 heads.
TEST(SelectionPolicy, RowsFillTheShare) {
  const Policy::Impl snapkv = built("snapkv", third);
  EXPECT_EQ(snapkv.rules->selection, (RowSelection{By::snapkv, 321, 32, 5, false}));
  EXPECT_EQ(snapkv.rules->name, "snapkv");
  EXPECT_TRUE(snapkv.rules->rules[0][0].everything);
  EXPECT_EQ(snapkv.rules->rules[4][0], HeadRule::sliding(50));
  EXPECT_EQ(built("pyramidkv", third).rules->selection, (RowSelection{By::pyramidkv, 321, 64, 5, false}));
  EXPECT_EQ(built("h2o", third).rules->selection, (RowSelection{By::h2o, 321, 0, 0, false}));
  EXPECT_THAT(snapkv.description, HasSubstr("cut to 321 rows"));
}

// 2673 rows, less 100 sliding and 6 local heads of 4 + 1 + 100, over 2 heads.
TEST(SelectionPolicy, ProtectedHeadsShareWhatTheWindowsLeave) {
  for (const char* name : {"razor+snapkv", "razor+h2o"}) {
    const Policy::Impl policy = built(name, third);
    EXPECT_EQ(policy.rules->selection.rows, 971) << name;
    EXPECT_EQ(policy.protected_heads, 2);
    EXPECT_EQ(policy.rules->rules[0][0], (HeadRule{false, 4, 100, 0, true}));
    EXPECT_TRUE(policy.rules->rules[0][1].everything);
  }
}

TEST(SelectionPolicy, RowsMayBeNamed) {
  const Policy::Impl policy = built("snapkv", [](PolicyOptions& o) {
    o.rows = 512;
    o.observation_window = 64;
    o.pooling_kernel = 7;
    o.max_pooling = true;
  });
  EXPECT_EQ(policy.rules->selection, (RowSelection{By::snapkv, 512, 64, 7, true}));
}

TEST(SelectionPolicy, ASharePaysForTheWidestWindow) {
  const Policy::Impl policy = built("streaming-llm", [](PolicyOptions& o) {
    third(o);
    o.window = std::int64_t{1} << 40;
  });
  EXPECT_EQ(policy.rules->rules[0][0], (HeadRule{false, 4, 317, 0, false}));
}

TEST(SelectionPolicy, BytesStayWithinTheBudget) {
  for (const char* name : {"snapkv", "pyramidkv", "h2o", "razor+snapkv", "streaming-llm", "razor"}) {
    for (const double share : {0.2, 0.33, 0.5, 1.0}) {
      const Policy::Impl policy = built(name, [&](PolicyOptions& o) {
        third(o);
        o.budget_share = share;
      });
      std::int64_t rows = 0;
      for (const auto& layer : policy.rules->rules) {
        for (const HeadRule& rule : layer) {
          const std::int64_t whole = policy.rules->selects_rows() ? policy.rules->selection.rows : 1000;
          rows += rule.everything ? whole : rule.sinks + rule.window(1000) + (rule.compensate ? 1 : 0);
        }
      }
      EXPECT_LE(static_cast<double>(rows), share * 8100.0) << name << " " << share;
    }
  }
}

TEST(SelectionPolicy, RefusesWhatMakesNoSense) {
  const auto refuses = [](const char* policy, const std::function<void(PolicyOptions&)>& edit, const char* word) {
    try {
      built(policy, edit);
      ADD_FAILURE() << policy << " " << word;
    } catch (const InvalidArgument& error) {
      EXPECT_THAT(error.what(), HasSubstr(word));
    }
  };
  refuses(
      "snapkv", [](PolicyOptions&) {}, "rows per head or a byte budget");
  refuses(
      "snapkv", [](PolicyOptions& o) { o.rows = 31; }, "expected 32");
  refuses(
      "h2o", [](PolicyOptions& o) { o.rows = 1; }, "expected 2");
  refuses(
      "razor", [](PolicyOptions& o) { o.rows = 100; }, "not a number of rows");
  refuses(
      "snapkv", [](PolicyOptions& o) { third(o), o.rows = 100; }, "not both");
  refuses(
      "snapkv", [](PolicyOptions& o) { third(o), o.observation_window = 65; }, "1 to 64");
  refuses(
      "snapkv", [](PolicyOptions& o) { third(o), o.pooling_kernel = 4; }, "odd");
  refuses(
      "snapkv", [](PolicyOptions& o) { third(o), o.prefill = PrefillMode::streaming; }, "exact prefill");
  refuses(
      "snapkv", [](PolicyOptions& o) { third(o), o.budget_share = 0.02; }, "too small");
  refuses(
      "razor+snapkv", [](PolicyOptions& o) { third(o), o.budget_share = 0.08; }, "too small");
  refuses(
      "snapkv", [](PolicyOptions& o) { o.budget_share = 0.5; }, "number of tokens");
  refuses(
      "snapkv", [](PolicyOptions& o) { third(o), o.budget_share = 1.5; }, "up to 1");
  refuses(
      "razor+h2o", [](PolicyOptions& o) { third(o), o.heads = "none"; }, "there is none");
  refuses("razor+pyramidkv", third, "unknown policy");
}

}  // namespace
}  // namespace razorkv
