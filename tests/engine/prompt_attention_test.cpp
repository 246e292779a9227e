// Attention that key rows receive in a prefill, against whole matrices in double precision.
#include "engine/prompt_attention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <span>
#include <string>
#include <utility>

#include "engine/selection_fixture.h"
#include "razorkv/error.h"

namespace razorkv::test {
namespace {

// Logits of these models stay below 20 in size. A product over 16 elements and the log-sum-exp are off by a few times
// 20 * 2^-24 = 1.2e-6, and a weight, exp of their difference, by that share of itself.
constexpr double kShareOff = 2e-5;

void expect_close(std::span<const double> found, const std::vector<double>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t p = 0; p < expected.size(); ++p) {
    // Written so that NaN fails.
    if (!(std::fabs(found[p] - expected[p]) <= kShareOff * expected[p])) {
      ADD_FAILURE() << "row " << p << ": expected " << expected[p] << ", found " << found[p];
      return;
    }
  }
}

class Received : public ::testing::TestWithParam<std::pair<int, int>> {
 protected:
  static TinyOptions options() { return tiny_heads(GetParam()); }
};

// Pages of 64 rows end within and between the batches.
TEST_P(Received, EqualsTheMatrixWhateverTheBatches) {
  for (const std::int64_t batch : {7, 64, 150}) {
    const RecordedPrefill run(options(), 150, batch);
    ASSERT_EQ(run.keeper.error(), nullptr);
    ASSERT_EQ(run.attention.tokens(), 150);
    for (std::int64_t layer = 0; layer < 2; ++layer) {
      for (std::int64_t head = 0; head < run.kv_heads; ++head) {
        expect_close(run.attention.received(layer, head), run.expected(layer, head, 0));
        for (const std::int64_t window : {1, 32, 64}) {
          const HeadRows& rows = run.whole.layer(layer)[static_cast<std::size_t>(head)];
          expect_close(run.attention.received_from_last(window, layer, head, rows),
                       run.expected(layer, head, 150 - window));
        }
      }
    }
  }
}

std::string group_name(const ::testing::TestParamInfo<std::pair<int, int>>& shape) {
  return "heads" + std::to_string(shape.param.first) + "of" + std::to_string(shape.param.second);
}

INSTANTIATE_TEST_SUITE_P(Groups, Received,
                         ::testing::Values(std::pair{2, 2}, std::pair{6, 2}, std::pair{8, 2}, std::pair{14, 2}),
                         group_name);

TEST(PromptAttention, FewerRowsThanTheWindow) {
  const RecordedPrefill run({}, 5, 2);
  expect_close(run.attention.received_from_last(32, 1, 1, run.whole.layer(1)[1]), run.expected(1, 1, 0));
}

TEST(PromptAttention, WeightsOfARowSumToOne) {
  const RecordedPrefill run({}, 100, 33);
  double sum = 0.0;
  for (const double weight : run.attention.received(1, 0)) sum += weight;
  EXPECT_NEAR(sum, 2.0 * 100.0, 200.0 * kShareOff);  // 2 query heads, 100 rows
}

TEST(PromptAttention, ARepeatedBatchIsAnError) {
  RecordedPrefill run({}, 20, 20);
  KvSequence other = run.tiny.engine.new_sequence(run.tiny.engine.full_policy());
  PromptAttentionObserver observer(run.attention);
  run.tiny.engine.set_observer(&observer);
  run.tiny.feed(other, random_tokens(10, run.tiny.vocabulary(), 3), 10);
  ASSERT_NE(observer.error(), nullptr);
  EXPECT_THROW(std::rethrow_exception(observer.error()), InvalidArgument);
}

TEST(PromptAttention, SlidingLayersAreLeftOut) {
  TinyOptions options;
  options.architecture = "gemma3";
  options.layers = 6;
  options.sliding_window = 16;
  const RecordedPrefill run(options, 90, 40);
  ASSERT_EQ(run.keeper.error(), nullptr);
  EXPECT_EQ(run.attention.tokens(), 90);
  EXPECT_EQ(run.attention.received(5, 1).size(), 90U);
}

}  // namespace
}  // namespace razorkv::test
