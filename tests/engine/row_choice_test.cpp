// Which rows SnapKV, PyramidKV and H2O keep, and the engine on top of them.
#include "engine/row_choice.h"

#include <gtest/gtest.h>

#include <array>
#include <numeric>
#include <string>
#include <utility>

#include "base/binary_writer.h"
#include "engine/selection_fixture.h"
#include "engine/state_codec.h"
#include "razorkv/error.h"

namespace razorkv::test {
namespace {

using By = RowSelection::By;
using Positions = std::vector<std::int64_t>;

/// The `count` largest, by search for one after the other; rising.
Positions largest(const std::vector<double>& votes, std::int64_t count) {
  std::vector<bool> taken(votes.size());
  for (std::int64_t i = 0; i < count; ++i) {
    std::size_t best = votes.size();
    for (std::size_t p = 0; p < votes.size(); ++p) {
      if (!taken[p] && (best == votes.size() || votes[p] > votes[best])) best = p;
    }
    taken[best] = true;
  }
  Positions positions;
  for (std::size_t p = 0; p < votes.size(); ++p) {
    if (taken[p]) positions.push_back(static_cast<std::int64_t>(p));
  }
  return positions;
}

Positions with_last(Positions positions, std::int64_t newest, std::int64_t tokens) {
  for (std::int64_t p = tokens - newest; p < tokens; ++p) positions.push_back(p);
  return positions;
}

/// As published: weights of the last `window` queries on the rows before them, pooled with a stride of 1.
Positions snapkv_ref(const RecordedPrefill& run, std::int64_t layer, std::int64_t head, const RowSelection& selection) {
  const std::int64_t n = run.whole.tokens();
  std::vector<double> votes = run.expected(layer, head, n - selection.window);
  votes.resize(static_cast<std::size_t>(n - selection.window));
  std::vector<double> pooled;
  const std::int64_t count = n - selection.window;
  for (std::int64_t p = 0; p < count; ++p) {
    double sum = 0.0;
    double most = 0.0;
    for (std::int64_t i = p - selection.kernel / 2; i <= p + selection.kernel / 2; ++i) {
      if (i < 0 || i >= count) continue;
      sum += votes[static_cast<std::size_t>(i)];
      most = std::max(most, votes[static_cast<std::size_t>(i)]);
    }
    pooled.push_back(selection.max_pool ? most : sum);
  }
  return with_last(largest(pooled, selection.rows - selection.window), selection.window, n);
}

Positions h2o_ref(const RecordedPrefill& run, std::int64_t layer, std::int64_t head, std::int64_t rows) {
  std::vector<double> votes = run.expected(layer, head, 0);
  votes.resize(votes.size() - static_cast<std::size_t>(rows / 2));
  return with_last(largest(votes, rows - rows / 2), rows / 2, run.whole.tokens());
}

class Chosen : public ::testing::TestWithParam<std::pair<int, int>> {
 protected:
  static TinyOptions options() { return tiny_heads(GetParam()); }
  RecordedPrefill run_{options(), 200, 48};
};

TEST_P(Chosen, EqualsTheReference) {
  for (const RowSelection& selection :
       {RowSelection{By::snapkv, 80, 32, 5, false}, RowSelection{By::snapkv, 90, 64, 7, true},
        RowSelection{By::snapkv, 60, 32, 7, false}, RowSelection{By::h2o, 61, 0, 0, false}}) {
    const KvSequence fork = run_.whole.with_policy(run_.selecting(selection));
    const RowChoice choice = choose_rows(run_.attention, fork);
    for (std::int64_t layer = 0; layer < 2; ++layer) {
      for (std::int64_t head = 0; head < run_.kv_heads; ++head) {
        const Positions expected = selection.by == By::h2o ? h2o_ref(run_, layer, head, selection.rows)
                                                           : snapkv_ref(run_, layer, head, selection);
        EXPECT_EQ(choice[static_cast<std::size_t>(layer)][static_cast<std::size_t>(head)], expected)
            << "layer " << layer << " head " << head << " rows " << selection.rows;
        EXPECT_EQ(std::ssize(expected), selection.rows);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Groups, Chosen,
                         ::testing::Values(std::pair{2, 2}, std::pair{6, 2}, std::pair{8, 2}, std::pair{14, 2}),
                         [](const ::testing::TestParamInfo<std::pair<int, int>>& shape) {
                           return "heads" + std::to_string(shape.param.first) + "of" +
                                  std::to_string(shape.param.second);
                         });

TEST(PoolVotes, HandWorked) {
  const std::vector<double> votes{6, 0, 0, 3, 9};
  EXPECT_EQ(pool_votes(votes, 3, false), (std::vector<double>{2, 2, 1, 4, 4}));
  EXPECT_EQ(pool_votes(votes, 3, true), (std::vector<double>{6, 6, 3, 9, 9}));
  EXPECT_EQ(pool_votes(votes, 1, false), votes);
}

TEST(HeaviestRows, TiesGoToTheLowerPosition) {
  EXPECT_EQ(heaviest_rows(std::vector<double>{1, 2, 2, 0, 2}, 2), (Positions{1, 2}));
  EXPECT_EQ(heaviest_rows(std::vector<double>{1, 2}, 5), (Positions{0, 1}));
  EXPECT_EQ(heaviest_rows(std::vector<double>{1, 2}, 0), Positions{});
}

TEST(PyramidRows, FallInEqualStepsWithinTheSum) {
  // Mean 100 beside the window of 20: least 5, most 195.
  EXPECT_EQ(pyramid_rows(120, 20, 3, 10000), (Positions{215, 120, 25}));
  // No layer can have more than 150 rows.
  EXPECT_EQ(pyramid_rows(120, 20, 3, 150), (Positions{150, 120, 90}));
  EXPECT_EQ(pyramid_rows(120, 20, 1, 10000), Positions{120});
  EXPECT_EQ(pyramid_rows(120, 20, 2, 100), (Positions{100, 100}));
  for (const std::int64_t layers : {2, 7, 24, 30}) {
    const Positions rows = pyramid_rows(1234, 64, layers, 20000);
    EXPECT_TRUE(std::is_sorted(rows.rbegin(), rows.rend()));
    const std::int64_t sum = std::accumulate(rows.begin(), rows.end(), std::int64_t{0});
    EXPECT_LE(sum, layers * 1234);
    EXPECT_GT(sum, layers * 1233);
  }
}

TEST(Selected, KeepingAllRowsIsTheUncompressedEngineBitForBit) {
  RecordedPrefill run({}, 100, 100);
  const Tokens next = random_tokens(20, run.tiny.vocabulary(), 5);
  KvSequence whole = run.whole;
  const Logits expected = run.tiny.feed(whole, next, 3);
  for (const RowSelection& selection :
       {RowSelection{By::snapkv, 100, 32, 5, false}, RowSelection{By::pyramidkv, 100, 64, 5, false},
        RowSelection{By::h2o, 100, 0, 0, false}}) {
    KvSequence fork = run.whole.with_policy(run.selecting(selection));
    fork.compress(choose_rows(run.attention, fork));
    EXPECT_EQ(run.tiny.feed(fork, next, 3), expected);
  }
}

// The rows of sinks and window, chosen by hand, against the rule that keeps sinks and window.
TEST(Selected, DecodesLikeTheRuleThatKeepsTheSameRows) {
  RecordedPrefill run({}, 150, 150);
  const std::int64_t sinks = 4;
  const std::int64_t window = 40;
  KvSequence ruled = run.whole.with_policy(run.tiny.uniform({false, sinks, window + 1, 0, false}));
  ruled.compress();
  Positions positions(static_cast<std::size_t>(sinks));
  std::iota(positions.begin(), positions.end(), std::int64_t{0});
  positions = with_last(positions, window, 150);
  KvSequence chosen = run.whole.with_policy(run.selecting({By::h2o, 44, 0, 0, false}));
  chosen.compress(RowChoice(2, std::vector<Positions>(2, positions)));
  const Tokens next = random_tokens(1, run.tiny.vocabulary(), 6);
  // The rule drops one row for the query's own; the choice adds it. Same rows, added in other orders: see
  // compression_test.cpp.
  EXPECT_LE(worst_row_error(run.tiny.feed(chosen, next, 1), run.tiny.feed(ruled, next, 1), run.tiny.vocabulary()),
            3e-5);
}

// O6: pages that were given back are filled with NaN on their next use, before the answer is computed.
TEST(Selected, DroppedRowsAreGone) {
  const auto answer = [](bool poison) {
    TinyEngine tiny(TinyOptions{});
    PromptAttention attention(tiny.model->config(), true);
    PromptAttentionObserver observer(attention);
    KvSequence sequence = tiny.engine.new_sequence(tiny.engine.full_policy());
    tiny.engine.set_observer(&observer);
    tiny.feed(sequence, random_tokens(150, tiny.vocabulary(), 7), 50);
    tiny.engine.set_observer(nullptr);
    auto policy = std::make_shared<KvPolicy>(*tiny.engine.full_policy());
    policy->selection = {By::snapkv, 50, 32, 5, false};
    sequence = sequence.with_policy(policy);
    sequence.compress(choose_rows(attention, sequence));
    EXPECT_EQ(tiny.engine.pool_stats().live_bytes, 0U);
    tiny.engine.pool().poison_new_pages(poison);
    KvSequence other = tiny.engine.new_sequence(tiny.engine.full_policy());
    other.reserve(tiny.engine.pool(), 400);  // takes the pages that were given back
    return tiny.feed(sequence, random_tokens(70, tiny.vocabulary(), 8), 9);
  };
  const Logits clean = answer(false);
  for (const float logit : clean) ASSERT_TRUE(std::isfinite(logit));
  EXPECT_EQ(answer(true), clean);
}

// One prefill, many policies, whatever the order; rows and bytes by formula.
TEST(Selected, ForksShareAPrefillAndHoldWhatTheFormulaSays) {
  RecordedPrefill run({}, 180, 64);
  const RowSelection snapkv{By::snapkv, 70, 32, 5, false};
  const RowSelection h2o{By::h2o, 50, 0, 0, false};
  const Tokens next = random_tokens(12, run.tiny.vocabulary(), 9);
  const auto ask = [&](const RowSelection& selection) {
    KvSequence fork = run.whole.with_policy(run.selecting(selection));
    fork.compress(choose_rows(run.attention, fork));
    const std::size_t row = 2 * 16 * 4;
    EXPECT_EQ(fork.usage().rows, 2 * 2 * selection.rows);
    EXPECT_EQ(fork.usage().row_bytes, 4 * static_cast<std::size_t>(selection.rows) * row);
    const KvSequence snapshot = fork;
    const Logits first = run.tiny.feed(fork, next, 12);
    EXPECT_EQ(fork.usage().rows, 2 * 2 * (selection.rows + 12));
    fork = snapshot;
    EXPECT_EQ(run.tiny.feed(fork, next, 12), first);
    return first;
  };
  const Logits by_snapkv = ask(snapkv);
  const Logits by_h2o = ask(h2o);
  EXPECT_NE(by_snapkv, by_h2o);
  EXPECT_EQ(ask(snapkv), by_snapkv);
}

TEST(Selected, RazorHeadsKeepTheirWindows) {
  RecordedPrefill run({}, 120, 120);
  auto policy = std::make_shared<KvPolicy>(*run.tiny.mixed({false, 4, 20, 0, true}));
  policy->selection = {By::snapkv, 60, 32, 5, false};
  KvSequence fork = run.whole.with_policy(policy);
  fork.compress(choose_rows(run.attention, fork));
  EXPECT_EQ(fork.layer(0)[0].usage().rows, 4 + 1 + 20);
  EXPECT_EQ(fork.layer(0)[1].usage().rows, 60);
  EXPECT_EQ(fork.layer(1)[0].usage().rows, 60);
}

TEST(Selected, RefusesWhatIsMissing) {
  RecordedPrefill run({}, 40, 40, false);
  KvSequence h2o = run.whole.with_policy(run.selecting({By::h2o, 20, 0, 0, false}));
  EXPECT_THROW(choose_rows(run.attention, h2o), InvalidArgument);  // not accumulated
  EXPECT_THROW(h2o.compress(), InvalidArgument);
  EXPECT_FALSE(h2o.compressed());
  EXPECT_THROW(choose_rows(run.attention, run.whole), InvalidArgument);  // selects nothing
  KvSequence longer = run.whole.with_policy(run.selecting({By::snapkv, 36, 32, 5, false}));
  run.tiny.feed(longer, random_tokens(1, run.tiny.vocabulary(), 1), 1);
  EXPECT_THROW(choose_rows(run.attention, longer), InvalidArgument);  // not recorded
}

TEST(Selected, CannotBeSavedOnceCompressed) {
  RecordedPrefill run({}, 60, 60);
  KvSequence fork = run.whole.with_policy(run.selecting({By::snapkv, 40, 32, 5, false}));
  const SavedState state{{}, {}, "selecting"};
  BinaryWriter before;
  encode_state(before, {"model", 96}, fork, state, 0);
  fork.compress(choose_rows(run.attention, fork));
  BinaryWriter after;
  EXPECT_THROW(encode_state(after, {"model", 96}, fork, state, 0), InvalidArgument);
}

}  // namespace
}  // namespace razorkv::test
