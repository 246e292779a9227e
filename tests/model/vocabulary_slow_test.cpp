#include <gtest/gtest.h>

#include <string>

#include "model/text_checks.h"
#include "model/vocabulary.h"
#include "support/test_files.h"

namespace razorkv {
namespace {

class VocabularySlow : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const auto path = test::model_file(GetParam());
    if (!path) GTEST_SKIP() << test::missing_model(GetParam());
    vocabulary_ = Vocabulary::open(*path);
  }
  /// Gemma 3 270M is a base model without a template of its own.
  static std::string name() { return GetParam() == std::string(test::kGemma3) ? "gemma" : ""; }
  std::shared_ptr<const Vocabulary> vocabulary_;
};

TEST_P(VocabularySlow, TokensEqualTheReference) { test::check_tokens_equal_the_reference(*vocabulary_); }
TEST_P(VocabularySlow, InvalidTextIsRepaired) { test::check_invalid_text_is_repaired(*vocabulary_); }
TEST_P(VocabularySlow, LongRuns) { test::check_long_runs(*vocabulary_, 1000000); }
TEST_P(VocabularySlow, RenderingEqualsTheReference) { test::check_rendering_equals_the_reference(vocabulary_, name()); }
TEST_P(VocabularySlow, TurnsGrowAsTheWhole) { test::check_turns_grow_as_the_whole(vocabulary_, name()); }
TEST_P(VocabularySlow, ControlTextStaysText) { test::check_control_text_stays_text(vocabulary_, name()); }

INSTANTIATE_TEST_SUITE_P(Models, VocabularySlow, testing::Values(test::kQwenCoder, test::kGemma3),
                         [](const auto& test) { return std::string(test.index == 0 ? "Qwen" : "Gemma"); });

}  // namespace
}  // namespace razorkv
