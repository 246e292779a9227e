// What a state file gives back.
#include "engine/state_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "razorkv/error.h"
#include "state_case.h"
#include "support/temporary_folder.h"

namespace razorkv {
namespace {

using test::Running;
using ::testing::ElementsAre;
using ::testing::SizeIs;

/// Same size, same bits, all finite.
void expect_same_bits(const std::vector<float>& found, const std::vector<float>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    ASSERT_TRUE(std::isfinite(expected[i])) << i;
    ASSERT_EQ(std::memcmp(&found[i], &expected[i], sizeof(float)), 0) << i << ": " << found[i] << " " << expected[i];
  }
}

struct Case {
  const char* name;
  bool sliding = false;
  bool streaming = false;
  bool compress = false;
  RowType type = RowType::f16;
  std::int64_t prompt = 200;
};

class StateRoundTrip : public ::testing::TestWithParam<Case> {};

TEST_P(StateRoundTrip, GoesOnBitForBit) {
  const Case& c = GetParam();
  const auto model = test::tiny_model(c.sliding);
  const auto policy = test::mixed_policy(c.streaming);
  const test::TemporaryFolder folder;
  Running saved(model, policy, c.type);
  saved.feed_random(c.prompt, 3);
  if (c.compress) {
    saved.sequence.compress();
    saved.feed_random(30, 4);
    for (int i = 0; i < 7; ++i) saved.feed({i});
  }
  saved.save(folder.file("state"));
  EXPECT_THAT(folder.names(), ElementsAre("state"));
  const std::vector<float> expected = saved.greedy(20);

  Running loaded(model, policy, c.type);
  loaded.feed_random(5, 9);  // something to be replaced
  loaded.load(folder.file("state"));
  EXPECT_EQ(loaded.state.tokens, saved.state.tokens);
  EXPECT_EQ(loaded.state.policy_description, "razor for tests");
  EXPECT_EQ(loaded.sequence.compressed(), saved.sequence.compressed());
  EXPECT_EQ(loaded.sequence.usage().allocated_bytes, saved.sequence.usage().allocated_bytes);
  expect_same_bits(loaded.greedy(20), expected);

  loaded.save(folder.file("again"));
  EXPECT_EQ(test::read_bytes(folder.file("again")), test::read_bytes(folder.file("state")));
  if (!c.compress) {  // the end of the prompt may come after loading
    saved.sequence.compress();
    loaded.sequence.compress();
    expect_same_bits(loaded.greedy(20), saved.greedy(20));
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, StateRoundTrip,
                         ::testing::Values(Case{"uncompressed"}, Case{"compressed", false, false, true},
                                           Case{"compressed_f32", false, false, true, RowType::f32},
                                           Case{"streaming", false, true}, Case{"sliding", true},
                                           Case{"sliding_compressed", true, false, true},
                                           Case{"sliding_streaming_f32", true, true, false, RowType::f32},
                                           Case{"one_token", false, false, true, RowType::f16, 1},
                                           Case{"whole_pages", false, false, false, RowType::f16, 128}),
                         [](const auto& tested) { return tested.param.name; });

TEST(StateFile, EmptySequence) {
  const auto model = test::tiny_model();
  const test::TemporaryFolder folder;
  for (const bool streaming : {false, true}) {
    Running saved(model, test::mixed_policy(streaming));
    saved.save(folder.file("state"));
    Running loaded(model, test::mixed_policy(streaming));
    loaded.feed_random(100, 5);
    loaded.load(folder.file("state"));
    EXPECT_EQ(loaded.sequence.tokens(), 0);
    EXPECT_THAT(loaded.state.logits, SizeIs(0));
    saved.feed_random(100, 6);
    loaded.feed_random(100, 6);
    expect_same_bits(loaded.greedy(20), saved.greedy(20));
  }
}

TEST(StateFile, SavingChangesNothingAndGivesTheSameBytes) {
  const test::TemporaryFolder folder;
  Running running(test::tiny_model(), test::mixed_policy());
  running.feed_random(150, 1);
  running.sequence.compress();
  const std::vector<float> before = running.greedy(5);
  running.save(folder.file("a"));
  running.save(folder.file("b"));
  expect_same_bits(running.greedy(5), before);
  EXPECT_EQ(test::read_bytes(folder.file("a")), test::read_bytes(folder.file("b")));
}

TEST(StateFile, PoolGetsBackWhatTheLoadedSequenceHeld) {
  const test::TemporaryFolder folder;
  Running running(test::tiny_model(), test::mixed_policy());
  running.feed_random(150, 1);
  running.save(folder.file("state"));
  const std::size_t live = running.engine.pool_stats().live_bytes;
  {
    const LoadedState loaded = read_state(folder.file("state"), running.engine, running.policy);
    EXPECT_EQ(running.engine.pool_stats().live_bytes, 2 * live);
  }
  EXPECT_EQ(running.engine.pool_stats().live_bytes, live);
}

TEST(StateFile, ArgumentsThatDoNotBelongTogether) {
  const test::TemporaryFolder folder;
  Running running(test::tiny_model(), test::mixed_policy());
  running.feed_random(10, 1);
  running.state.tokens.pop_back();
  EXPECT_THROW(running.save(folder.file("state")), InvalidArgument);
  running.state.tokens.push_back(0);
  running.state.logits.pop_back();
  EXPECT_THROW(running.save(folder.file("state")), InvalidArgument);
  EXPECT_THAT(folder.names(), SizeIs(0));
}

}  // namespace
}  // namespace razorkv
