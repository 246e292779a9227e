// From options and scores to rules, for every policy; byte budgets.
#include "engine/build_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "engine/policy_choice.h"
#include "engine/policy_shape.h"
#include "heads/head_plan.h"
#include "razorkv/error.h"
#include "support/temporary_folder.h"

namespace razorkv {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

using test::kRowBytes;

/// Induction ranks (0,1), (2,0), (1,1), (3,0), ... by the second query head of each group; echo ranks (3,1) first.
HeadProfile scored() {
  const std::vector<std::vector<double>> induction{{.1, .9}, {.2, .7}, {.8, .3}, {.6, .05}, {1.0, 1.0}};
  HeadProfile profile;
  HeadScores scores;
  for (const auto& layer : induction) {
    scores.induction.push_back({0.0, layer[0], 0.0, layer[1]});
    scores.echo.push_back({0.0, 0.0, 0.0, 0.0});
  }
  scores.echo[3][2] = 0.85;
  profile.model.shape = test::policy_shape();
  profile.scores = scores;
  return profile;
}

PolicyOptions with(const std::function<void(PolicyOptions&)>& edit) {
  PolicyOptions options;
  options.window = 100;
  options.window_divisor = 0;
  edit(options);
  return options;
}

Policy::Impl built(const PolicyOptions& options) {
  return build_policy(test::policy_shape(), kRowBytes, options, scored);
}
/// For options that must not need scores.
Policy::Impl built_without_scores(const PolicyOptions& options) {
  return build_policy(test::policy_shape(), kRowBytes, options,
                      []() -> HeadProfile { throw FileError("the policy asked for a profile"); });
}

std::vector<HeadId> whole(const Policy::Impl& policy) {
  const std::vector<HeadId> heads = protected_heads(test::policy_shape(), {"", policy.rules->rules});
  EXPECT_EQ(policy.protected_heads, static_cast<std::int64_t>(heads.size()));
  return heads;
}

/// The one rule of all local heads outside sliding layers.
HeadRule local(const Policy::Impl& policy) {
  std::vector<HeadRule> found;
  for (const HeadId head : test::policy_shape().eligible()) {
    const HeadRule& rule =
        policy.rules->rules[static_cast<std::size_t>(head.layer)][static_cast<std::size_t>(head.kv_head)];
    if (!rule.everything) found.push_back(rule);
  }
  if (found.empty()) return HeadRule::all();
  for (const HeadRule& rule : found) EXPECT_EQ(rule, found.front());
  return found.front();
}

/// Rows kept at n tokens, counted head by head.
std::int64_t rows_at(const Policy::Impl& policy, std::int64_t n) {
  std::int64_t rows = 0;
  for (const auto& layer : policy.rules->rules) {
    for (const HeadRule& rule : layer) {
      rows += rule.everything ? n : std::min(n, rule.sinks + (rule.compensate ? 1 : 0) + rule.window(n));
    }
  }
  return rows;
}

std::string refusal(const PolicyOptions& options) {
  try {
    built(options);
  } catch (const InvalidArgument& error) {
    return error.what();
  } catch (const FileError& error) {
    return std::string("FileError: ") + error.what();
  }
  return "not refused";
}

TEST(BuildPolicy, Full) {
  const Policy::Impl policy = built_without_scores(with([](PolicyOptions& o) { o.policy = "full"; }));
  EXPECT_EQ(whole(policy), test::policy_shape().eligible());
  EXPECT_EQ(policy.rules->rules[4][1], HeadRule::sliding(50));
  EXPECT_EQ(policy.rules->name, "full");
}

TEST(BuildPolicy, RazorBySharesListsAllAndNone) {
  const auto razor = [](const char* heads) {
    return with([&](PolicyOptions& o) {
      o.heads = heads;
      o.window_divisor = 5;
    });
  };
  // 8 heads can be chosen: 30% are 2 by induction, 2% are 1 by echo.
  const Policy::Impl safe = built(razor("safe"));
  EXPECT_EQ(whole(safe), (std::vector<HeadId>{{0, 1}, {2, 0}, {3, 1}}));
  EXPECT_EQ(local(safe), (HeadRule{false, 4, 100, 5, true}));
  EXPECT_EQ(safe.rules->rules[4][0], HeadRule::sliding(50));
  EXPECT_EQ(safe.description,
            "razor: 3 of 8 KV heads kept whole (safe), others 4 sinks, window max(100, n/5), compensation token");
  EXPECT_EQ(whole(built(razor("0.5+0"))), (std::vector<HeadId>{{0, 1}, {1, 1}, {2, 0}, {3, 0}}));
  EXPECT_EQ(whole(built_without_scores(razor("3:0,0:0"))), (std::vector<HeadId>{{0, 0}, {3, 0}}));
  EXPECT_EQ(whole(built_without_scores(razor("all"))), test::policy_shape().eligible());
  EXPECT_TRUE(whole(built_without_scores(razor("none"))).empty());
  const auto seven = whole(built_without_scores(razor("random:7:3")));
  EXPECT_EQ(seven.size(), 3U);
  EXPECT_EQ(whole(built_without_scores(razor("random:7:3"))), seven);
  EXPECT_NE(whole(built_without_scores(razor("random:8:3"))), seven);
}

TEST(BuildPolicy, TheOtherPolicies) {
  const Policy::Impl without = built(with([](PolicyOptions& o) {
    o.policy = "razor-nocomp";
    o.heads = "safe";
    o.prefill = PrefillMode::streaming;
  }));
  EXPECT_EQ(whole(without).size(), 3U);
  EXPECT_EQ(local(without), (HeadRule{false, 4, 100, 0, false}));
  EXPECT_TRUE(without.rules->streaming);

  const Policy::Impl streaming = built_without_scores(with([](PolicyOptions& o) { o.policy = "streaming-llm"; }));
  EXPECT_TRUE(whole(streaming).empty());
  EXPECT_EQ(local(streaming), (HeadRule{false, 4, 100, 0, false}));
  EXPECT_FALSE(streaming.rules->streaming);

  // As many heads as the shares protect, whatever the seed.
  std::vector<std::vector<HeadId>> drawn;
  for (const std::uint64_t seed : {1U, 2U, 3U, 4U}) {
    const Policy::Impl random = built(with([&](PolicyOptions& o) {
      o.policy = "random";
      o.heads = "safe";
      o.seed = seed;
    }));
    drawn.push_back(whole(random));
    EXPECT_EQ(drawn.back().size(), 3U);
    EXPECT_EQ(local(random), (HeadRule{false, 4, 100, 0, true}));
    EXPECT_THAT(random.description, HasSubstr("random:" + std::to_string(seed) + ":safe"));
  }
  EXPECT_FALSE(drawn[0] == drawn[1] && drawn[1] == drawn[2] && drawn[2] == drawn[3]);
}

TEST(BuildPolicy, ImportedPatternsAndLists) {
  const test::TemporaryFolder folder;
  test::write_bytes(folder.file("full_attention_heads.tsv"), "1\t0\n0\t1\n1\t0\n0\t1\n.5\t.5\n");
  const auto duo = [&](const std::string& path) {
    return with([&](PolicyOptions& o) {
      o.policy = "duo";
      o.profile = path;
    });
  };
  const std::vector<HeadId> ones{{0, 0}, {1, 1}, {2, 0}, {3, 1}};
  // The table alone has no sizes: those of the options are taken.
  const Policy::Impl table = built_without_scores(duo(folder.file("full_attention_heads.tsv")));
  EXPECT_EQ(whole(table), ones);
  EXPECT_EQ(local(table), (HeadRule{false, 4, 100, 0, false}));
  test::write_bytes(folder.file("config.json"), R"({"sink_size": 64, "recent_size": 256})");
  EXPECT_EQ(local(built_without_scores(duo(folder.path()))), (HeadRule{false, 64, 256, 0, false}));
  EXPECT_THAT(refusal(duo("")), HasSubstr("--profile"));
  EXPECT_THAT(refusal(duo(folder.file("none"))), HasSubstr("FileError"));

  test::write_bytes(folder.file("lists.json"), R"({"prefix_matching": {"2": [1]}, "copying": {"0": [0]}})");
  const auto lists = [&](const std::string& policy, const std::string& path) {
    return with([&](PolicyOptions& o) {
      o.policy = policy;
      o.heads = "lists";
      o.profile = path;
    });
  };
  EXPECT_EQ(whole(built_without_scores(lists("razor", folder.file("lists.json")))),
            (std::vector<HeadId>{{0, 0}, {2, 1}}));
  EXPECT_THAT(refusal(lists("razor", "")), HasSubstr("--profile"));
  EXPECT_THAT(refusal(lists("random", folder.file("lists.json"))), HasSubstr("lists"));
}

TEST(BuildPolicy, RefusesWhatItCannotMean) {
  EXPECT_THAT(refusal(with([](PolicyOptions& o) { o.policy = "magic"; })),
              AllOf(HasSubstr("magic"), HasSubstr("razor")));
  EXPECT_THAT(refusal(with([](PolicyOptions& o) { o.heads = "most"; })), HasSubstr("most"));
  EXPECT_THAT(refusal(with([](PolicyOptions& o) { o.heads = "9:0"; })), HasSubstr("9:0"));
  EXPECT_THAT(refusal(with([](PolicyOptions& o) { o.heads = "4:0"; })), HasSubstr("sliding"));
  EXPECT_THAT(refusal(with([](PolicyOptions& o) { o.sinks = -1; })), HasSubstr("-1"));
  EXPECT_THAT(refusal(with([](PolicyOptions& o) { o.window = 0; })), HasSubstr("found 0"));
  EXPECT_THAT(refusal(with([](PolicyOptions& o) { o.window_divisor = -2; })), HasSubstr("-2"));
  EXPECT_THAT(refusal(with([](PolicyOptions& o) { o.window = std::numeric_limits<std::int64_t>::max(); })),
              HasSubstr("--window"));
  EXPECT_THAT(refusal(with([](PolicyOptions& o) { o.budget_bytes = -1; })), HasSubstr("budget"));
  EXPECT_THAT(refusal(with([](PolicyOptions& o) { o.budget_bytes = 1; })), HasSubstr("tokens"));
  for (const char* heads : {"all", "none", "0:1"}) {
    EXPECT_THAT(refusal(with([&](PolicyOptions& o) {
                  o.policy = "random";
                  o.heads = heads;
                })),
                HasSubstr(heads));
  }
  HeadProfile plans = scored();
  plans.scores.reset();
  EXPECT_THROW(build_policy(test::policy_shape(), kRowBytes, with([](PolicyOptions&) {}), [&] { return plans; }),
               InvalidArgument);
  EXPECT_THROW(built_without_scores(with([](PolicyOptions&) {})), FileError);
}

constexpr std::int64_t kTokens = 6400;

Policy::Impl within(std::int64_t rows, const char* policy = "razor", const char* heads = "safe") {
  return built(with([&](PolicyOptions& o) {
    o.policy = policy;
    o.heads = heads;
    o.window = 4000;
    o.window_divisor = 5;
    o.budget_bytes = rows * kRowBytes;
    o.budget_tokens = kTokens;
  }));
}

TEST(KvBudget, WhatFitsStaysAsItIs) {
  const std::int64_t rows = 3 * kTokens + 5 * (4 + 1 + 4000) + 2 * 50;
  const Policy::Impl policy = within(rows);
  EXPECT_EQ(rows_at(policy, kTokens), rows);
  EXPECT_EQ(local(policy), (HeadRule{false, 4, 4000, 5, true}));
  EXPECT_NE(local(within(rows - 1)).window_floor, 4000);
}

TEST(KvBudget, NarrowsTheWindowFirstThenGivesUpHeads) {
  // 3 whole heads and 5 windows of 1000.
  const Policy::Impl window = within(3 * kTokens + 5 * (4 + 1 + 1000) + 2 * 50 + 4);
  EXPECT_EQ(whole(window).size(), 3U);
  EXPECT_EQ(local(window), (HeadRule{false, 4, 1000, 0, true}));
  EXPECT_THAT(window.description, AllOf(HasSubstr("budget"), HasSubstr("window 1000")));

  // 2 whole heads and 6 windows of 200: the lowest of the three goes, which is (2,0) with 0.8.
  const Policy::Impl heads = within(2 * kTokens + 6 * (4 + 1 + 200) + 2 * 50);
  EXPECT_EQ(whole(heads), (std::vector<HeadId>{{0, 1}, {3, 1}}));
  EXPECT_EQ(local(heads).window_floor, 200);
  EXPECT_THAT(heads.description, AllOf(HasSubstr("2 of 8"), HasSubstr("cut from 3 heads by the budget")));
}

TEST(KvBudget, IsKeptAndUsedByEveryPolicy) {
  for (const char* policy : {"razor", "razor-nocomp", "streaming-llm", "random"}) {
    for (const std::int64_t rows : {1000, 3000, 10000, 25000}) {
      const Policy::Impl made = within(rows, policy);
      EXPECT_LE(rows_at(made, kTokens), rows) << policy;
      // One more row in every local head would be too much.
      const auto locals = static_cast<std::int64_t>(test::policy_shape().eligible().size()) - made.protected_heads;
      EXPECT_GT(rows_at(made, kTokens) + locals, rows) << policy;
      EXPECT_EQ(local(made).compensate, std::string(policy) == "razor" || std::string(policy) == "random");
    }
  }
  EXPECT_EQ(whole(within(10000, "razor", "3:0,0:0")).size(), 1U);
}

TEST(KvBudget, TooSmallNamesTheSmallestSize) {
  const auto text = [](const char* policy, std::int64_t rows) {
    return refusal(with([&](PolicyOptions& o) {
      o.policy = policy;
      o.heads = "safe";
      o.budget_bytes = rows * kRowBytes;
      o.budget_tokens = kTokens;
    }));
  };
  const std::int64_t least = 8 * (4 + 1 + kTokens / 64) + 2 * 50;
  EXPECT_EQ(rows_at(within(least), kTokens), least);
  EXPECT_THAT(text("razor", least - 1),
              AllOf(HasSubstr(std::to_string((least - 1) * kRowBytes)), HasSubstr(std::to_string(least * kRowBytes))));
  EXPECT_THAT(text("full", 8 * kTokens), HasSubstr(std::to_string((8 * kTokens + 100) * kRowBytes)));
  EXPECT_EQ(text("full", 8 * kTokens + 100), "not refused");
}

TEST(KvBudget, KeepsTheSizesOfAnImportedPattern) {
  const test::TemporaryFolder folder;
  test::write_bytes(folder.file("full_attention_heads.tsv"), "1\t0\n0\t1\n1\t0\n0\t1\n.5\t.5\n");
  test::write_bytes(folder.file("config.json"), R"({"sink_size": 64, "recent_size": 2560})");
  const Policy::Impl made = built_without_scores(with([&](PolicyOptions& o) {
    o.policy = "duo";
    o.profile = folder.path();
    o.budget_bytes = (4 * kTokens + 4 * (64 + 500) + 100) * kRowBytes;
    o.budget_tokens = kTokens;
  }));
  EXPECT_EQ(whole(made).size(), 4U);
  EXPECT_EQ(local(made), (HeadRule{false, 64, 500, 0, false}));
}

}  // namespace
}  // namespace razorkv
