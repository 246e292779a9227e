#include "heads/scoring_prompt.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "razorkv/error.h"

namespace razorkv {
namespace {

TEST(ScoringPrompt, RepeatsOneBlockBehindBos) {
  ScoringPromptSettings settings;
  settings.seed = 7;
  const ScoringPrompt prompt = make_scoring_prompt(settings, {50000, 3}, 32768);
  ASSERT_EQ(prompt.tokens.size(), 1 + 4 * 2500);
  EXPECT_EQ(prompt.tokens[0], 3);
  EXPECT_EQ(prompt.prefix, 1);
  EXPECT_EQ(prompt.block, 2500);
  for (std::size_t i = 1 + 2500; i < prompt.tokens.size(); ++i) ASSERT_EQ(prompt.tokens[i], prompt.tokens[i - 2500]);
  const std::set<std::int32_t> ids(prompt.tokens.begin() + 1, prompt.tokens.begin() + 2501);
  EXPECT_GT(ids.size(), 2350U);  // expected 2500 - 2500^2 / (2 * 50000) = 2437.5 distinct, deviation about 8
}

TEST(ScoringPrompt, WithoutBosThereIsNoPrefix) {
  ScoringPromptSettings settings;
  settings.block = 5;
  const ScoringPrompt prompt = make_scoring_prompt(settings, {100, std::nullopt}, 2048);
  EXPECT_EQ(prompt.prefix, 0);
  EXPECT_EQ(prompt.tokens.size(), 20U);
}

TEST(ScoringPrompt, ShortContextShortensTheBlock) {
  const ScoringPromptSettings settings;
  EXPECT_EQ(make_scoring_prompt(settings, {100, 0}, 10001).block, 2500);
  EXPECT_EQ(make_scoring_prompt(settings, {100, 0}, 10000).block, 2499);
  EXPECT_EQ(make_scoring_prompt(settings, {100, 0}, 8192).block, 2047);
  EXPECT_EQ(make_scoring_prompt(settings, {100, 0}, 8192).tokens.size(), 1 + 4 * 2047);
  EXPECT_EQ(make_scoring_prompt(settings, {100, 0}, 5).block, 1);
  EXPECT_THROW(make_scoring_prompt(settings, {100, 0}, 4), InvalidArgument);
}

TEST(ScoringPrompt, SameSeedSameIdsOnEveryPlatform) {
  ScoringPromptSettings settings;
  settings.block = 4;
  settings.seed = 5489;  // the standard's default seed: its first value is 14514284786278117030
  const ScoringPrompt prompt = make_scoring_prompt(settings, {1000, std::nullopt}, 2048);
  EXPECT_EQ(prompt.tokens[0], static_cast<std::int32_t>(14514284786278117030ULL % 1000));
  EXPECT_EQ(make_scoring_prompt(settings, {1000, std::nullopt}, 2048).tokens, prompt.tokens);
  settings.seed = 5490;
  EXPECT_NE(make_scoring_prompt(settings, {1000, std::nullopt}, 2048).tokens, prompt.tokens);
}

TEST(ScoringPrompt, DrawsFromTheRangeAndUsableIdsOnly) {
  ScoringPromptSettings settings;
  settings.id_low = 10;
  settings.id_high = 20;
  settings.usable = [](std::int32_t id) { return id % 2 == 1; };
  const ScoringPrompt prompt = make_scoring_prompt(settings, {100, std::nullopt}, 32768);
  const std::set<std::int32_t> ids(prompt.tokens.begin(), prompt.tokens.end());
  EXPECT_EQ(ids, (std::set<std::int32_t>{11, 13, 15, 17, 19}));
}

TEST(ScoringPrompt, DistinctBlockHasNoIdTwice) {
  ScoringPromptSettings settings;
  settings.block = 90;
  settings.distinct = true;
  const ScoringPrompt prompt = make_scoring_prompt(settings, {90, std::nullopt}, 32768);
  EXPECT_EQ(std::set<std::int32_t>(prompt.tokens.begin(), prompt.tokens.begin() + 90).size(), 90U);
  settings.block = 91;
  EXPECT_THROW(make_scoring_prompt(settings, {90, std::nullopt}, 32768), InvalidArgument);
}

TEST(ScoringPrompt, RefusesBadSettings) {
  const auto refused = [](auto change) {
    ScoringPromptSettings settings;
    change(settings);
    EXPECT_THROW(make_scoring_prompt(settings, {100, 0}, 32768), InvalidArgument);
  };
  refused([](auto& s) { s.block = 0; });
  refused([](auto& s) { s.repeats = 1; });
  refused([](auto& s) { s.id_high = 101; });
  refused([](auto& s) { s.id_low = -1; });
  refused([](auto& s) { s.id_low = s.id_high = 50; });
  refused([](auto& s) { s.usable = [](std::int32_t) { return false; }; });
}

}  // namespace
}  // namespace razorkv
