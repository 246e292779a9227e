#include <gtest/gtest.h>

#include "engine/model_profile.h"
#include "heads/head_selection.h"
#include "heads/profile_report.h"
#include "support/test_files.h"

namespace razorkv {
namespace {

// Scores of a plain float32 implementation with other random ids, stated with two digits. Seed 1 gives, in the order
// below, 0.963, 0.924, 0.895, 0.881, fifth 0.283; echo 0.839, 0.709, 0.576: the bounds leave room for the draw.
TEST(MakeProfile, FindsTheKnownHeadsOfQwenCoder) {
  const auto path = test::model_file(test::kQwenCoder);
  if (!path) GTEST_SKIP() << test::missing_model(test::kQwenCoder);
  const HeadProfile profile = make_profile(Model::load(*path), {});
  const KvHeadScores kv = kv_head_scores(profile.model.shape, *profile.scores);

  EXPECT_NEAR(kv.induction[16][0], 0.97, 0.03);
  EXPECT_NEAR(kv.induction[9][1], 0.92, 0.03);
  EXPECT_NEAR(kv.induction[11][1], 0.92, 0.03);
  EXPECT_NEAR(kv.induction[16][1], 0.89, 0.03);
  const std::vector<HeadId> by_induction = rank_heads(profile.model.shape, kv.induction);
  EXPECT_EQ(by_induction[0], (HeadId{16, 0}));
  const HeadId fifth = by_induction[4];
  EXPECT_LT(kv.induction[static_cast<std::size_t>(fifth.layer)][static_cast<std::size_t>(fifth.kv_head)], 0.45);

  const std::vector<HeadId> by_echo = rank_heads(profile.model.shape, kv.echo);
  EXPECT_EQ(by_echo[0], (HeadId{3, 0}));
  EXPECT_NEAR(kv.echo[3][0], 0.85, 0.05);
  EXPECT_NEAR(kv.echo[13][0], 0.75, 0.05);
  EXPECT_NEAR(kv.echo[7][1], 0.59, 0.05);

  // The counts of the table in algorithm section 3.2.
  const auto count = [&](const char* choice) {
    return select_heads(parse_head_choice(choice), profile.model.shape, profile.scores).size();
  };
  EXPECT_EQ(count("paper"), 7U);
  EXPECT_EQ(count("0.2+0.01"), 10U);
  EXPECT_EQ(count("safe"), 15U);
  EXPECT_EQ(count("wide"), 23U);
}

}  // namespace
}  // namespace razorkv
