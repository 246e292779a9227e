#include "heads/head_selection.h"

#include <gtest/gtest.h>

#include <set>

#include "heads/head_plan.h"
#include "razorkv/error.h"

namespace razorkv {
namespace {

HeadShape shape_of(std::int64_t layers, std::int64_t heads, std::int64_t kv_heads) {
  HeadShape shape;
  shape.head_width = 64;
  for (std::int64_t layer = 0; layer < layers; ++layer) shape.layers.push_back({heads, kv_heads, false});
  return shape;
}

std::vector<HeadId> select(const std::string& text, const HeadShape& shape,
                           const std::optional<HeadScores>& scores = std::nullopt) {
  return select_heads(parse_head_choice(text), shape, scores);
}

/// 24 layers of 14 / 2 heads: induction falls with (layer, head), echo rises, so that the unions have no overlap.
HeadScores ramp(const HeadShape& shape) {
  HeadScores scores;
  double value = 1.0;
  for (const LayerHeads& layer : shape.layers) {
    std::vector<double> induction, echo;
    for (std::int64_t head = 0; head < layer.heads; ++head) {
      value -= 1e-3;
      induction.push_back(value);
      echo.push_back(1.0 - value);
    }
    scores.induction.push_back(induction);
    scores.echo.push_back(echo);
  }
  return scores;
}

TEST(ShareCount, GivesTheCountsOfTheTable) {
  EXPECT_EQ(share_count(0.14, 48) + share_count(0.01, 48), 7);
  EXPECT_EQ(share_count(0.20, 48) + share_count(0.01, 48), 10);
  EXPECT_EQ(share_count(0.30, 48) + share_count(0.02, 48), 15);
  EXPECT_EQ(share_count(0.46, 48) + share_count(0.04, 48), 23);
}

TEST(ShareCount, EdgesAndExactMultiples) {
  EXPECT_EQ(share_count(0.0, 48), 0);
  EXPECT_EQ(share_count(1.0, 48), 48);
  EXPECT_EQ(share_count(0.29, 100), 29);  // 0.29 * 100 = 28.999...
  EXPECT_EQ(share_count(0.01, 3), 1);
  EXPECT_EQ(share_count(0.5, 0), 0);
}

TEST(SelectHeads, PresetsOnTheShapeOfTheTable) {
  const HeadShape shape = shape_of(24, 14, 2);
  const HeadScores scores = ramp(shape);
  EXPECT_EQ(select("paper", shape, scores).size(), 7U);
  EXPECT_EQ(select("0.2+0.01", shape, scores).size(), 10U);
  EXPECT_EQ(select("safe", shape, scores).size(), 15U);
  EXPECT_EQ(select("wide", shape, scores).size(), 23U);
  const std::vector<HeadId> paper = select("paper", shape, scores);
  const std::vector<HeadId> expected{{0, 0}, {0, 1}, {1, 0}, {1, 1}, {2, 0}, {2, 1}, {23, 1}};
  EXPECT_EQ(paper, expected);
}

TEST(SelectHeads, UnionCountsAHeadOnce) {
  const HeadShape shape = shape_of(2, 4, 2);
  HeadScores scores{{{0, 0, .9, 0}, {0, 0, 0, 0}}, {{0, 0, 0, .8}, {0, 0, 0, 0}}};
  EXPECT_EQ(select("0.25+0.25", shape, scores), (std::vector<HeadId>{{0, 1}}));
}

TEST(SelectHeads, KvHeadScoreIsTheMaximumOfItsGroup) {
  const HeadShape shape = shape_of(2, 4, 2);  // query heads 0,1 -> KV 0; 2,3 -> KV 1
  const HeadScores scores{{{.3, .3, .0, .1}, {.0, .0, .0, .4}}, {{0, 0, 0, 0}, {0, 0, 0, 0}}};
  EXPECT_EQ(select("0.25+0", shape, scores), (std::vector<HeadId>{{1, 1}}));
  const KvHeadScores kv = kv_head_scores(shape, scores);
  EXPECT_EQ(kv.induction, (std::vector<std::vector<double>>{{.3, .1}, {.0, .4}}));
}

TEST(SelectHeads, TiesGoToTheLowerLayerThenHead) {
  const HeadShape shape = shape_of(3, 2, 2);
  const HeadScores scores{{{.5, .7}, {.7, .7}, {.7, .9}}, {{0, 0}, {0, 0}, {0, 0}}};
  EXPECT_EQ(select("0.5+0", shape, scores), (std::vector<HeadId>{{0, 1}, {1, 0}, {2, 1}}));
}

TEST(SelectHeads, SlidingLayersAreNeitherRankedNorCounted) {
  HeadShape shape = shape_of(6, 4, 1);
  shape.sliding_window = 512;
  for (const std::size_t layer : {0U, 1U, 2U, 4U}) shape.layers[layer].sliding = true;
  HeadScores scores = ramp(shape);
  EXPECT_EQ(select("all", shape), (std::vector<HeadId>{{3, 0}, {5, 0}}));
  EXPECT_EQ(select("0.5+0", shape, scores), (std::vector<HeadId>{{3, 0}}));
  EXPECT_EQ(select("wide", shape, scores).size(), 2U);
  EXPECT_THROW(select("0:0", shape), InvalidArgument);
  EXPECT_THROW(select("random:1:3", shape), InvalidArgument);
  EXPECT_EQ(select("random:1:2", shape).size(), 2U);
}

TEST(SelectHeads, RandomHasTheCountAsked) {
  const HeadShape shape = shape_of(24, 14, 2);
  const HeadScores scores = ramp(shape);
  EXPECT_EQ(select("random:1", shape, scores).size(), 23U);
  EXPECT_EQ(select("random:1:paper", shape, scores).size(), 7U);
  EXPECT_EQ(select("random:1:0.3+0.02", shape, scores).size(), 15U);
  EXPECT_EQ(select("random:1:7", shape), select("random:1:7", shape));
  EXPECT_NE(select("random:1:7", shape), select("random:2:7", shape));
  const std::vector<HeadId> all = select("random:3:48", shape);
  EXPECT_EQ(all, shape.eligible());
  std::set<HeadId> seen;  // every head can be drawn: 200 draws of 7 of 48 miss one with probability 1e-12
  for (int seed = 0; seed < 200; ++seed) {
    for (const HeadId head : select("random:" + std::to_string(seed) + ":7", shape)) seen.insert(head);
  }
  EXPECT_EQ(seen.size(), 48U);
}

TEST(SelectHeads, ListAllNone) {
  const HeadShape shape = shape_of(24, 14, 2);
  EXPECT_EQ(select("16:0,9:1", shape), (std::vector<HeadId>{{9, 1}, {16, 0}}));
  EXPECT_EQ(select("all", shape).size(), 48U);
  EXPECT_TRUE(select("none", shape).empty());
  EXPECT_THROW(select("24:0", shape), InvalidArgument);
  EXPECT_THROW(select("3:2", shape), InvalidArgument);
  EXPECT_THROW(select("paper", shape), InvalidArgument);  // no scores
}

TEST(ParseHeadChoice, RefusesWhatItDoesNotKnow) {
  for (const char* text : {"",
                           "papr",
                           "0.3",
                           "0.3+",
                           "1.1+0",
                           "-0.1+0",
                           "0.3+nan",
                           "1:",
                           ":1",
                           "1:2,",
                           "1:2,1:2",
                           "1:2:3",
                           "a:b",
                           "-1:0",
                           "random",
                           "random:",
                           "random:x",
                           "random:1:-2",
                           "random:1:2:3",
                           "random:1:x",
                           "randomly",
                           "0.3+0.02+0.1",
                           "99999999999999999999:0"}) {
    EXPECT_THROW(parse_head_choice(text), InvalidArgument) << text;
  }
  try {
    parse_head_choice("papr");
  } catch (const InvalidArgument& error) {
    EXPECT_NE(std::string(error.what()).find("papr"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("paper, safe, wide"), std::string::npos);
  }
}

TEST(ParseHeadChoice, SaysWhetherScoresAreNeeded) {
  for (const char* text : {"paper", "0.1+0", "random:1", "random:1:safe"}) {
    EXPECT_TRUE(needs_scores(parse_head_choice(text))) << text;
  }
  for (const char* text : {"all", "none", "1:0", "random:1:3"}) {
    EXPECT_FALSE(needs_scores(parse_head_choice(text))) << text;
  }
}

TEST(HeadPlan, GivesEachKindOfHeadItsRule) {
  HeadShape shape = shape_of(3, 4, 2);
  shape.sliding_window = 16;
  shape.layers[1].sliding = true;
  const HeadRule local{false, 4, 4000, 5, true};
  const std::vector<HeadId> chosen{{2, 1}};
  const HeadPlan plan = make_plan(shape, chosen, local, "test");
  EXPECT_EQ(plan.rules[0][0], local);
  EXPECT_EQ(plan.rules[1][1], HeadRule::sliding(16));
  EXPECT_EQ(plan.rules[2][0], local);
  EXPECT_EQ(plan.rules[2][1], HeadRule::all());
  EXPECT_EQ(protected_heads(shape, plan), chosen);
}

}  // namespace
}  // namespace razorkv
