#include "heads/profile_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "razorkv/error.h"

namespace razorkv {
namespace {

using testing::HasSubstr;

HeadProfile profile_with(std::vector<std::vector<double>> induction, std::vector<std::vector<double>> echo) {
  HeadProfile profile;
  profile.model.architecture = "llama";
  profile.model.name = "a <b> & \"c\"";
  profile.model.shape.head_width = 8;
  for (const auto& layer : induction) {
    const auto heads = static_cast<std::int64_t>(layer.size());
    profile.model.shape.layers.push_back({heads, heads / 2, false});
  }
  profile.scores = HeadScores{std::move(induction), std::move(echo)};
  return profile;
}

std::size_t occurrences(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(Spearman, KnownValues) {
  const std::vector<double> a{1, 2, 3, 4, 5};
  EXPECT_NEAR(spearman(a, std::vector<double>{10, 20, 30, 40, 500}), 1.0, 1e-15);
  EXPECT_NEAR(spearman(a, std::vector<double>{5, 4, 3, 2, 1}), -1.0, 1e-15);
  // 1 - 6 * sum d^2 / (n (n^2 - 1)) with d = 1, -1, 1, -1, 0
  EXPECT_NEAR(spearman(a, std::vector<double>{2, 1, 4, 3, 5}), 1.0 - 6.0 * 4 / (5 * 24), 1e-15);
}

TEST(Spearman, TiesHaveTheirAverageRank) {
  // Ranks 1, 2.5, 2.5, 4 against 1, 2, 3, 4: covariance 4.5, variances 4.5 and 5.
  EXPECT_NEAR(spearman(std::vector<double>{0, 7, 7, 9}, std::vector<double>{1, 2, 3, 4}), 4.5 / std::sqrt(4.5 * 5),
              1e-15);
  EXPECT_TRUE(std::isnan(spearman(std::vector<double>{1, 1}, std::vector<double>{1, 2})));
  EXPECT_THROW(spearman(std::vector<double>{1}, std::vector<double>{1, 2}), InvalidArgument);
}

TEST(HeadOverlap, CountsAndJaccard) {
  const std::vector<HeadId> a{{0, 0}, {1, 1}, {2, 0}}, b{{1, 1}, {2, 0}, {2, 1}, {3, 0}};
  const SetOverlap overlap = head_overlap(a, b);
  EXPECT_EQ(overlap.first, 3);
  EXPECT_EQ(overlap.second, 4);
  EXPECT_EQ(overlap.both, 2);
  EXPECT_NEAR(overlap.jaccard, 2.0 / 5.0, 1e-15);
  EXPECT_EQ(head_overlap({}, {}).jaccard, 1.0);
}

TEST(CompareProfiles, OverKvHeadsOutsideSlidingLayers) {
  HeadProfile a = profile_with({{.1, .2, .3, .4}, {.9, 0, 0, .8}, {.5, .6, .7, .0}},
                               {{.1, .0, .3, .0}, {0, 0, 0, 0}, {.2, .0, .4, .0}});
  HeadProfile b = a;
  b.scores->induction[1] = {0, 0, .9, .9};  // only in the sliding layer
  b.scores->echo[0] = {.5, .0, .3, .0};     // swaps ranks: .1 .3 .2 .4 against .5 .3 .2 .4
  for (HeadProfile* profile : {&a, &b}) {
    profile->model.shape.sliding_window = 4;
    profile->model.shape.layers[1].sliding = true;
  }
  const ProfileComparison comparison = compare_profiles(a, {}, b, {});
  EXPECT_NEAR(comparison.induction, 1.0, 1e-15);
  EXPECT_NEAR(comparison.echo, 1.0 - 6.0 * (9 + 1 + 1 + 1) / (4 * 15), 1e-15);
  b.model.shape.layers.pop_back();
  EXPECT_THROW(compare_profiles(a, {}, b, {}), InvalidArgument);
  b = a;
  b.scores.reset();
  EXPECT_THROW(compare_profiles(a, {}, b, {}), InvalidArgument);
}

TEST(MeanProfile, AveragesScoresAndListsSeeds) {
  HeadProfile a = profile_with({{.1, .2}}, {{.5, .0}});
  a.scoring = ScoringFacts{10, 4, {7}, 0, 100, false, true, false};
  a.plans["x"] = {};
  HeadProfile b = a;
  b.scoring->seeds = {9};
  b.scores = HeadScores{{{.3, .6}}, {{.5, .4}}};
  const HeadProfile mean = mean_profile(std::vector<HeadProfile>{a, b});
  EXPECT_EQ(mean.scoring->seeds, (std::vector<std::uint64_t>{7, 9}));
  EXPECT_NEAR(mean.scores->induction[0][0], .2, 1e-15);
  EXPECT_NEAR(mean.scores->echo[0][1], .2, 1e-15);
  EXPECT_TRUE(mean.plans.empty());
  EXPECT_EQ(mean.model, a.model);
}

TEST(TopHeadsTable, RanksBothScoresAndMarksTheChosen) {
  const HeadProfile profile = profile_with({{.1, .2, .3, .4}, {.9, 0, 0, .8}}, {{.0, .0, .0, .75}, {0, 0, 0, 0}});
  const std::vector<HeadId> chosen{{1, 0}};
  const std::string table = top_heads_table(profile, chosen, 2);
  EXPECT_EQ(occurrences(table, "\n"), 3U);
  EXPECT_THAT(table, HasSubstr("   1       1     0      0.900 *       0     1      0.750  \n"));
  EXPECT_THAT(table, HasSubstr("   2       1     1      0.800 "));
  EXPECT_EQ(occurrences(top_heads_table(profile, chosen, 100), "\n"), 5U);
}

TEST(HeatMap, HasACellPerHeadAndMarks) {
  const HeadProfile profile = profile_with({{.1, .2, .3, .4}, {.9, 0, 0, .8}}, {{.0, .0, .0, .75}, {0, 0, 0, 0}});
  const std::vector<HeadId> chosen{{1, 0}};
  const std::string svg = heat_map_svg(profile, chosen);
  EXPECT_EQ(svg.rfind("<svg xmlns=", 0), 0U);
  EXPECT_EQ(occurrences(svg, "<title>"), 8U);
  EXPECT_EQ(occurrences(svg, ", chosen</title>"), 2U);
  EXPECT_EQ(occurrences(svg, "class=\"mark\""), 3U);  // both panels and the legend
  EXPECT_THAT(svg, HasSubstr("<title>layer 0, KV head 1: 0.7500</title>"));
  EXPECT_THAT(svg, HasSubstr("a &lt;b&gt; &amp; &quot;c&quot;"));
  EXPECT_THAT(svg, HasSubstr("prefers-color-scheme:dark"));
  EXPECT_EQ(occurrences(svg, "<g>"), occurrences(svg, "</g>"));
}

TEST(Reports, NeedScores) {
  HeadProfile profile = profile_with({{.1, .2}}, {{.1, .2}});
  profile.scores.reset();
  EXPECT_THROW(top_heads_table(profile, {}, 3), InvalidArgument);
  EXPECT_THROW(heat_map_svg(profile, {}), InvalidArgument);
}

}  // namespace
}  // namespace razorkv
