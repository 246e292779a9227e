// Answers from a compressed document (evaluation, section 8): protecting the one induction head keeps every answer,
// protecting the other three loses every answer outside sinks and window.
#include <gtest/gtest.h>

#include <string>
#include <tuple>

#include "engine/retrieval_case.h"

namespace razorkv::test {
namespace {

// Dropped rows carry less than 1e-20 of the attention of the offset heads, and the mean head averages codes of +1 and
// -1, which sums and halves hold exactly: what is left is float32 rounding of logits below 40, 1e-5 at 32,768 tokens.
constexpr double kSameLogits = 1e-4;

using Setting = std::tuple<RowType, bool>;  // rows, streaming

std::string setting_name(const ::testing::TestParamInfo<Setting>& setting) {
  return std::string(std::get<0>(setting.param) == RowType::f32 ? "f32" : "f16") +
         (std::get<1>(setting.param) ? "streaming" : "exact");
}

class Retrieval : public ::testing::TestWithParam<Setting> {
 protected:
  RowType rows() const { return std::get<0>(GetParam()); }
  bool streaming() const { return std::get<1>(GetParam()); }
};

TEST_P(Retrieval, OnlyTheInductionHeadNeedsEverything) {
  RetrievalCase retrieval(retrieval_task(2000, 80, 3), rows());
  const std::vector<Reply> full = retrieval.ask_all(retrieval.uncompressed(), 2);
  EXPECT_EQ(retrieval.right(full, 2), 40);

  const KvSequence document = retrieval.read(retrieval.policy(kInductionHead, local_rule(64), streaming()));
  const std::vector<Reply> found = retrieval.ask_all(document, 2);
  EXPECT_EQ(retrieval.right(found, 2), 40);
  EXPECT_LE(farthest(found, full), kSameLogits);
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(retrieval.ask(document, retrieval.task.absent_keys[i]).tokens.front(), kRetrievalBos);
  }
  // Protected rows stay, the others shrink to sinks, compensation row and window.
  EXPECT_EQ(document.layer(1)[0].usage().rows, 2000);
  for (const HeadId head : kOtherHeads) {
    EXPECT_EQ(document.layer(head.layer)[static_cast<std::size_t>(head.kv_head)].usage().rows, 4 + 1 + 64);
  }
}

TEST_P(Retrieval, WithoutCompensationTokenTheLogitsMove) {
  RetrievalCase retrieval(retrieval_task(2000, 80, 3), rows());
  const std::vector<Reply> full = retrieval.ask_all(retrieval.uncompressed(), 8);
  const KvSequence document = retrieval.read(retrieval.policy(kInductionHead, local_rule(64, false), streaming()));
  const std::vector<Reply> found = retrieval.ask_all(document, 8);
  EXPECT_EQ(retrieval.right(found, 8), 10);
  EXPECT_GE(farthest(found, full), 1.0);
  EXPECT_LE(farthest(found, full), 10.0);
}

TEST_P(Retrieval, ProtectingTheOthersFindsNothingOutsideSinksAndWindow) {
  RetrievalCase retrieval(retrieval_task(2000, 80, 3), rows());
  const std::int64_t window = 64;
  const KvSequence document = retrieval.read(retrieval.policy(kOtherHeads, local_rule(window), streaming()));
  const std::vector<Reply> found = retrieval.ask_all(document);
  int outside = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const std::int64_t position = retrieval.task.needles[i].position;
    if (position < 3 || position >= 2000 - window) continue;
    ++outside;
    EXPECT_EQ(found[i].tokens.front(), kRetrievalBos) << "key at " << position;
  }
  EXPECT_GE(outside, 70);
}

INSTANTIATE_TEST_SUITE_P(Settings, Retrieval,
                         ::testing::Combine(::testing::Values(RowType::f32, RowType::f16), ::testing::Bool()),
                         setting_name);

TEST(RetrievalLong, Answers8192Tokens) {
  RetrievalCase retrieval(retrieval_task(8192, 80, 4), RowType::f16);
  const std::vector<Reply> full = retrieval.ask_all(retrieval.uncompressed(), 2);
  EXPECT_EQ(retrieval.right(full, 2), 40);
  for (const bool streaming : {false, true}) {
    const KvSequence document = retrieval.read(retrieval.policy(kInductionHead, local_rule(256), streaming));
    const std::vector<Reply> found = retrieval.ask_all(document, 2);
    EXPECT_EQ(retrieval.right(found, 2), 40);
    EXPECT_LE(farthest(found, full), kSameLogits);
  }
  const std::vector<Reply> lost = retrieval.ask_all(retrieval.read(retrieval.policy(kOtherHeads, local_rule(256))), 2);
  for (std::size_t i = 0; i < lost.size(); ++i) {
    const std::int64_t position = retrieval.task.needles[2 * i].position;
    if (position >= 3 && position < 8192 - 256) {
      EXPECT_EQ(lost[i].tokens.front(), kRetrievalBos) << position;
    }
  }
}

TEST(RetrievalLayouts, HalfSplitRopeAnswersTheSame) {
  RetrievalModelOptions options;
  options.layout = RopeKind::halves;
  RetrievalCase retrieval(retrieval_task(2000, 80, 5), RowType::f16, options);
  const KvSequence document = retrieval.read(retrieval.policy(kInductionHead, local_rule(64)));
  EXPECT_EQ(retrieval.right(retrieval.ask_all(document, 2), 2), 40);
}

// What must be held is the token behind the match. The question at position n sees the window [n + 1 - W, n].
TEST(RetrievalBoundaries, WhereTheInductionHeadIsCompressed) {
  const std::int64_t n = 600;
  const std::int64_t window = 64;
  const auto right_tokens = [&](std::int64_t position) {
    RetrievalCase retrieval(retrieval_task_at(n, {position}, 6), RowType::f32);
    const KvSequence document = retrieval.read(retrieval.policy(kOtherHeads, local_rule(window)));
    const Needle& needle = retrieval.task.needles.front();
    const std::vector<Token> found = retrieval.ask(document, needle.key()).tokens;
    const std::vector<Token> answer = needle.answer();
    return std::mismatch(found.begin(), found.end(), answer.begin()).first - found.begin();
  };
  EXPECT_EQ(right_tokens(1), 2);
  EXPECT_EQ(right_tokens(2), 1);
  EXPECT_EQ(right_tokens(3), 0);
  EXPECT_EQ(right_tokens(300), 0);
  EXPECT_EQ(right_tokens(n - window - 1), 0);
  EXPECT_EQ(right_tokens(n - window), 4);  // its key is outside already
  EXPECT_EQ(right_tokens(n - 5), 4);
}

// Layer 1 has heads that look one and two rows back. A window counts the current row, so they need three rows.
TEST(RetrievalWindows, ThreeRowsAreEnoughAndTwoAreNot) {
  RetrievalCase retrieval(retrieval_task(2000, 80, 7), RowType::f32);
  const std::vector<Reply> full = retrieval.ask_all(retrieval.uncompressed(), 16);
  const auto moved = [&](std::int64_t window) {
    const KvSequence document = retrieval.read(retrieval.policy(kInductionHead, local_rule(window)));
    return farthest(retrieval.ask_all(document, 16), full);
  };
  for (const std::int64_t window : {1, 2}) EXPECT_GE(moved(window), 1.0) << "window of " << window;
  for (const std::int64_t window : {3, 4, 8, 64}) EXPECT_LE(moved(window), kSameLogits) << "window of " << window;
}

}  // namespace
}  // namespace razorkv::test
