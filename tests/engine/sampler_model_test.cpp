#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "engine/sampler.h"
#include "razorkv/error.h"
#include "support/test_files.h"

namespace razorkv {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

class SamplerModel : public testing::Test {
 protected:
  void SetUp() override {
    const auto path = test::model_file(test::kSmolLm2);
    if (!path) GTEST_SKIP() << test::missing_model(test::kSmolLm2);
    vocabulary_ = Vocabulary::open(*path);
    logits_.assign(static_cast<std::size_t>(vocabulary_->size()), -30.0F);
  }
  static SamplingParams plain() {
    SamplingParams params;
    params.top_k = 0;
    params.top_p = 1.0F;
    params.min_p = 0.0F;
    params.temperature = 1.0F;
    params.seed = 17;
    return params;
  }
  static SamplingParams greedy() {
    SamplingParams params;
    params.temperature = 0.0F;
    return params;
  }
  std::map<Token, int> draw(const SamplingParams& params, int count) {
    Sampler sampler(vocabulary_, params);
    std::map<Token, int> out;
    for (int i = 0; i < count; ++i) ++out[sampler.sample(logits_)];
    return out;
  }
  std::shared_ptr<const Vocabulary> vocabulary_;
  std::vector<float> logits_;
};

TEST_F(SamplerModel, GreedyTakesTheLowestIdAmongEquals) {
  logits_[40000] = 5.0F;
  logits_[777] = 5.0F;
  logits_[12345] = 5.0F;
  EXPECT_EQ(Sampler(vocabulary_, greedy()).sample(logits_), 777);
  logits_[12345] = std::nextafter(5.0F, 6.0F);
  EXPECT_EQ(Sampler(vocabulary_, greedy()).sample(logits_), 12345);
}

TEST_F(SamplerModel, DrawsInProportion) {
  logits_[5] = std::log(0.7F);
  logits_[6] = std::log(0.2F);
  logits_[7] = std::log(0.1F);
  std::map<Token, int> counts = draw(plain(), 1000);
  // Standard deviation of the counts: at most sqrt(1000 * 0.7 * 0.3) = 14.5; bounds at 4 of them.
  EXPECT_NEAR(counts[5], 700, 58);
  EXPECT_NEAR(counts[6], 200, 51);
  EXPECT_NEAR(counts[7], 100, 38);
  SamplingParams params = plain();
  params.top_k = 2;
  EXPECT_EQ(draw(params, 300).size(), 2U);
  params = plain();
  params.top_p = 0.65F;
  EXPECT_EQ(draw(params, 300).size(), 1U);
  params = plain();
  params.min_p = 0.2F;  // of the largest: 0.14
  counts = draw(params, 300);
  EXPECT_EQ(counts.size(), 2U);
  EXPECT_EQ(counts.count(7), 0U);
  params = plain();
  params.temperature = 0.05F;
  EXPECT_EQ(draw(params, 300).size(), 1U);
}

TEST_F(SamplerModel, SeedRepeats) {
  for (std::size_t i = 0; i < 50; ++i) logits_[i] = 1.0F;
  const auto tokens = [&](Sampler sampler) {
    std::vector<Token> out;
    for (int i = 0; i < 40; ++i) out.push_back(sampler.sample(logits_));
    return out;
  };
  SamplingParams params = plain();
  const std::vector<Token> first = tokens(Sampler(vocabulary_, params));
  EXPECT_EQ(tokens(Sampler(vocabulary_, params)), first);
  params.seed = 18;
  EXPECT_NE(tokens(Sampler(vocabulary_, params)), first);
  params.seed.reset();
  Sampler random(vocabulary_, params);
  params.seed = random.seed();
  EXPECT_EQ(tokens(std::move(random)), tokens(Sampler(vocabulary_, params)));

  params.seed = 17;
  Sampler sampler(vocabulary_, params);
  for (int i = 0; i < 7; ++i) sampler.sample(logits_);
  EXPECT_EQ(tokens(sampler.clone()), tokens(sampler.clone()));
  sampler.reset();
  EXPECT_EQ(tokens(std::move(sampler)), first);
}

TEST_F(SamplerModel, PenaltiesAndBias) {
  logits_[5] = 4.0F;
  logits_[6] = 3.0F;
  SamplingParams params = greedy();
  params.repeat_penalty = 2.0F;
  Sampler sampler(vocabulary_, params);
  EXPECT_EQ(sampler.sample(logits_), 5);
  EXPECT_EQ(sampler.sample(logits_), 6);  // 4 / 2 < 3
  sampler.reset();
  EXPECT_EQ(sampler.sample(logits_), 5);
  Sampler seen(vocabulary_, params);
  seen.accept_prompt(5);
  EXPECT_EQ(seen.sample(logits_), 6);
  params.penalty_last_n = 0;
  Sampler none(vocabulary_, params);
  none.accept_prompt(5);
  EXPECT_EQ(none.sample(logits_), 5);
  params = greedy();
  params.presence_penalty = 1.5F;
  Sampler presence(vocabulary_, params);
  presence.accept_prompt(5);
  EXPECT_EQ(presence.sample(logits_), 6);
  params = greedy();
  params.logit_bias = {{5, -kInfinity}, {7, 33.5F}};
  EXPECT_EQ(Sampler(vocabulary_, params).sample(logits_), 7);
}

TEST_F(SamplerModel, GrammarRulesOutTokens) {
  SamplingParams params = greedy();
  params.grammar = "root ::= \"yes\" | \"no\"";
  Sampler sampler(vocabulary_, params);
  const auto token = [&](const std::string& text) { return vocabulary_->tokenize(text, false, false).at(0); };
  logits_[static_cast<std::size_t>(token("maybe"))] = 9.0F;
  logits_[static_cast<std::size_t>(token("no"))] = 2.0F;
  logits_[static_cast<std::size_t>(token("yes"))] = 1.0F;
  EXPECT_THROW(sampler.accept(token("maybe")), InvalidArgument);
  EXPECT_THROW(sampler.accept(vocabulary_->eos()), InvalidArgument);  // would end the process in libllama
  Sampler copy = sampler.clone();
  EXPECT_EQ(vocabulary_->piece(sampler.sample(logits_)), "no");
  const Token end = sampler.sample(logits_);
  EXPECT_TRUE(vocabulary_->is_end_of_generation(end));
  EXPECT_EQ(vocabulary_->piece(copy.sample(logits_)), "no");
  for (const char* bad : {"root ::= (", "start ::= \"a\"", "root ::= missing", "root ::= root \"a\""}) {
    params.grammar = bad;
    EXPECT_THROW(Sampler(vocabulary_, params), InvalidArgument) << bad;
  }
}

TEST_F(SamplerModel, GrammarsThatLibllamaTakesAreGoodAndOthersAreNamed) {
  const std::string deep(150, '(');
  const std::string closed = "root ::= " + deep + "\"a\"" + std::string(150, ')');
  for (const std::string& good : std::vector<std::string>{
           "root ::= \"a\"", "# c\nroot ::= item+ # d\nitem ::= \"- \" [^\\r\\n\\x0b-\\x0c] {2,5} \"\\n\"\n",
           "root ::=\n  ( \"a\" |\n \"b\" )* \"\\\"\" . [a-z\\]-]? | x{3} y{1,}\nx ::= \"\\u00e9\"\r\ny ::= \"z\"\n",
           "root ::= <|im_end|> | !<[5]>", closed}) {
    SamplingParams params = greedy();
    params.grammar = good;
    EXPECT_NO_THROW(Sampler(vocabulary_, params)) << good;
  }
  const std::string too_deep = "root ::= " + std::string(100000, '(');
  for (const std::string& bad :
       std::vector<std::string>{"x", "root = \"a\"", "root ::= \"a", "root ::= [a", "root ::= \"\\q\"", "root ::= *",
                                "root ::= \"a\"{3,1}", "root ::= \"a\"{99999}", "root ::= )", "root ::= (\"a\"",
                                "root ::= other", "root ::= <no such token>", "root ::= <[49152]>", "root ::= \"\\x4\"",
                                std::string("root ::= \"a\"\0", 13), "root ::= \"\xFF\"", too_deep}) {
    SamplingParams params = greedy();
    params.grammar = bad;
    testing::internal::CaptureStderr();
    EXPECT_THROW(Sampler(vocabulary_, params), InvalidArgument) << bad.substr(0, 80);
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "") << bad.substr(0, 80);
  }
}

TEST_F(SamplerModel, BadLogitsAreErrors) {
  for (const SamplingParams& params : {greedy(), plain()}) {
    Sampler sampler(vocabulary_, params);
    std::vector<float> bad = logits_;
    bad[49151] = std::nanf("");
    EXPECT_THROW(sampler.sample(bad), Error);
    bad[49151] = kInfinity;
    EXPECT_THROW(sampler.sample(bad), Error);
    bad.assign(bad.size(), -kInfinity);
    EXPECT_THROW(sampler.sample(bad), Error);
    bad[3] = 1.0F;
    EXPECT_EQ(sampler.sample(bad), 3);
    bad.pop_back();
    EXPECT_THROW(sampler.sample(bad), InvalidArgument);
  }
}

TEST_F(SamplerModel, BadParametersAreRefused) {
  const float nan = std::nanf("");
  const auto refused = [&](auto change) {
    SamplingParams params;
    change(params);
    EXPECT_THROW(Sampler(vocabulary_, params), InvalidArgument);
  };
  for (const float bad : {nan, -0.1F, kInfinity}) {
    refused([&](SamplingParams& params) { params.temperature = bad; });
    refused([&](SamplingParams& params) { params.top_p = bad; });
    refused([&](SamplingParams& params) { params.min_p = bad; });
    refused([&](SamplingParams& params) { params.repeat_penalty = bad; });
  }
  refused([](SamplingParams& params) { params.repeat_penalty = 0.0F; });
  refused([](SamplingParams& params) { params.top_k = -1; });
  refused([&](SamplingParams& params) { params.frequency_penalty = nan; });
  refused([&](SamplingParams& params) { params.presence_penalty = kInfinity; });
  refused([](SamplingParams& params) { params.penalty_last_n = -2; });
  refused([](SamplingParams& params) { params.penalty_last_n = std::numeric_limits<std::int32_t>::max(); });
  refused([](SamplingParams& params) { params.logit_bias = {{49152, 1.0F}}; });
  refused([&](SamplingParams& params) { params.logit_bias = {{1, nan}}; });
  Sampler sampler(vocabulary_, SamplingParams{});
  EXPECT_THROW(sampler.accept(-1), InvalidArgument);
  EXPECT_THROW(sampler.accept_prompt(49152), InvalidArgument);
}

}  // namespace
}  // namespace razorkv
