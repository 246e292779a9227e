#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "model/text_checks.h"
#include "model/vocabulary.h"
#include "razorkv/error.h"
#include "support/test_files.h"

namespace razorkv {
namespace {

class VocabularyModel : public testing::Test {
 protected:
  void SetUp() override {
    const auto path = test::model_file(test::kSmolLm2);
    if (!path) GTEST_SKIP() << test::missing_model(test::kSmolLm2);
    path_ = *path;
    vocabulary_ = Vocabulary::open(path_);
  }
  std::string path_;
  std::shared_ptr<const Vocabulary> vocabulary_;
};

TEST_F(VocabularyModel, TokensEqualTheReference) { test::check_tokens_equal_the_reference(*vocabulary_); }

TEST_F(VocabularyModel, InvalidTextIsRepaired) { test::check_invalid_text_is_repaired(*vocabulary_); }

TEST_F(VocabularyModel, LongRuns) {
  test::check_long_runs(*vocabulary_, 10000);
  test::check_long_runs(*vocabulary_, 1000000);
}

TEST_F(VocabularyModel, LongRunsOfEveryPreTokenizer) {
  for (const char* pre :
       {"default",    "llama-bpe", "deepseek-llm", "deepseek-coder", "deepseek-v3", "falcon", "starcoder", "gpt-2",
        "qwen2",      "bloom",     "viking",       "tekken",         "chameleon",   "gpt-4o", "superbpe",  "bailingmoe",
        "seed-coder", "kimi-k2",   "jais-2",       "youtu",          "tiny_aya",    "afmoe",  "qwen35",    "minerva-7b",
        "grok-2",     "exaone4",   "exaone-moe",   "hunyuan-dense",  "poro-chat"}) {
    const auto vocabulary = Vocabulary::open(path_, pre);
    for (const std::string unit : {"a", "A", " ", "\n", ".", "7", "中", "\xCC\x81", "a ", "<h1>"}) {
      std::string text;
      for (int i = 0; i < 20000; ++i) text += unit;
      if (std::string(pre) == "superbpe" && unit == "7") {
        EXPECT_THROW(vocabulary->tokenize(text, false, false), InvalidArgument);
        continue;
      }
      EXPECT_GT(vocabulary->tokenize(text, false, false).size(), 0U) << pre << " \"" << unit << '"';
    }
  }
}

TEST_F(VocabularyModel, TooLongARunIsRefused) {
  const std::string text(static_cast<std::size_t>(Vocabulary::kLongestRun) + 1, 'a');
  EXPECT_THROW(vocabulary_->tokenize(text, false, false), InvalidArgument);
}

TEST_F(VocabularyModel, KnowsItsSpecialTokens) {
  EXPECT_EQ(vocabulary_->size(), 49152);
  const std::vector<Token> end = vocabulary_->tokenize("<|im_end|>", false, true);
  ASSERT_EQ(end.size(), 1U);
  EXPECT_TRUE(vocabulary_->is_end_of_generation(end[0]));
  EXPECT_TRUE(vocabulary_->is_control(end[0]));
  EXPECT_EQ(vocabulary_->piece(end[0]), "");
  EXPECT_EQ(vocabulary_->piece(end[0], true), "<|im_end|>");
  EXPECT_GT(vocabulary_->tokenize("<|im_end|>", false, false).size(), 1U);
  EXPECT_FALSE(vocabulary_->is_end_of_generation(-1));
  EXPECT_FALSE(vocabulary_->is_end_of_generation(vocabulary_->tokenize("a", false, false)[0]));
}

TEST_F(VocabularyModel, TokensOutsideAreRefused) {
  for (const Token token : {-1, 49152, std::numeric_limits<Token>::max(), std::numeric_limits<Token>::min()}) {
    EXPECT_THROW(vocabulary_->piece(token), InvalidArgument);
    EXPECT_THROW(vocabulary_->detokenize(std::vector<Token>{token}), InvalidArgument);
  }
}

TEST(Vocabulary, UnreadableFilesAreRefused) { EXPECT_THROW(Vocabulary::open("/nonexistent/model.gguf"), FileError); }

}  // namespace
}  // namespace razorkv
