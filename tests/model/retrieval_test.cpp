#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <set>

#include "support/llama_reference.h"
#include "support/retrieval_model.h"

namespace razorkv::test {
namespace {

std::int32_t last_argmax(const std::vector<float>& logits) {
  const auto row = logits.end() - kRetrievalVocabulary;
  return static_cast<std::int32_t>(std::max_element(row, logits.end()) - row);
}

/// Right four-token answers, and absent keys answered with BOS. Questions follow each other in one context: a key is
/// asked once, so that earlier questions match no later one.
struct Score {
  int answered = 0;
  int refused = 0;
};

Score ask(const RetrievalModelOptions& options, std::int64_t length, int questions, int absent) {
  const std::string path = retrieval_model(options).write_temporary();
  const RetrievalTask task = retrieval_task(length, 80, 3);
  LlamaReference llama(path, {.context = length + 5 * (questions + absent) + 8, .repack = false});
  std::remove(path.c_str());
  llama.feed(task.context);
  Score score;
  for (int i = 0; i < questions; ++i) {
    const Needle& needle =
        task.needles[static_cast<std::size_t>(i) * task.needles.size() / static_cast<std::size_t>(questions)];
    std::vector<std::int32_t> answer;
    std::int32_t token = needle.key();
    for (int step = 0; step < 4; ++step) {
      token = last_argmax(llama.feed({token}));
      answer.push_back(token);
    }
    llama.feed({1});  // ends the answer, so that the next key does not follow it
    score.answered += answer == needle.answer() ? 1 : 0;
  }
  for (int i = 0; i < absent; ++i) {
    score.refused += last_argmax(llama.feed({task.absent_keys[static_cast<std::size_t>(i)]})) == kRetrievalBos ? 1 : 0;
  }
  return score;
}

TEST(RetrievalModel, LlamaAnswersAllQuestions) {
  const Score score = ask({}, 2000, 40, 5);
  EXPECT_EQ(score.answered, 40);
  EXPECT_EQ(score.refused, 5);
}

TEST(RetrievalModel, EchoVariantAnswersAllQuestions) {
  RetrievalModelOptions options;
  options.echo = true;
  EXPECT_EQ(ask(options, 2000, 40, 0).answered, 40);
}

TEST(RetrievalModel, HalfSplitLayoutAnswersAllQuestions) {
  RetrievalModelOptions options;
  options.layout = RopeKind::halves;
  EXPECT_EQ(ask(options, 2000, 40, 0).answered, 40);
}

TEST(RetrievalTask, NeedlesLieWhereTheySayAndIdsOccurOnce) {
  const RetrievalTask task = retrieval_task(600, 89, 9);
  ASSERT_EQ(task.context.size(), 600U);
  EXPECT_EQ(task.context[0], kRetrievalBos);
  ASSERT_EQ(task.needles.size(), 89U);
  EXPECT_EQ(task.absent_keys.size(), 448U - 5 * 89);
  std::multiset<std::int32_t> ids(task.context.begin(), task.context.end());
  for (const Needle& needle : task.needles) {
    ASSERT_EQ(needle.tokens.size(), 5U);
    for (std::size_t i = 0; i < 5; ++i) {
      EXPECT_EQ(task.context[static_cast<std::size_t>(needle.position) + i], needle.tokens[i]);
      EXPECT_EQ(ids.count(needle.tokens[i]), 1U);
    }
  }
  for (const std::int32_t key : task.absent_keys) EXPECT_EQ(ids.count(key), 0U);
  EXPECT_NE(retrieval_task(600, 89, 10).context, task.context);
}

TEST(RetrievalTask, PlacesNeedlesWhereAsked) {
  const RetrievalTask task = retrieval_task_at(40, {1, 6, 30}, 4);
  EXPECT_EQ(task.context.size(), 40U);
  EXPECT_EQ(task.needles[1].position, 6);
  EXPECT_EQ(task.context[30], task.needles[2].key());
  EXPECT_THROW(retrieval_task_at(40, {1, 5}, 4), std::invalid_argument);
  EXPECT_THROW(retrieval_task_at(40, {36}, 4), std::invalid_argument);
  EXPECT_THROW(retrieval_task_at(40, {0}, 4), std::invalid_argument);
}

}  // namespace
}  // namespace razorkv::test
