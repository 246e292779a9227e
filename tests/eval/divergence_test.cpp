#include "eval/perplexity/divergence.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "razorkv/error.h"

namespace razorkv {
namespace {

std::vector<float> random_logits(std::int64_t count, std::uint32_t seed, float spread = 4.0F) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(1.0F, spread);
  std::vector<float> out(static_cast<std::size_t>(count));
  for (float& value : out) value = normal(random);
  return out;
}

/// Probabilities in long double.
std::vector<long double> probabilities(const std::vector<float>& logits) {
  std::vector<long double> out;
  long double sum = 0.0L;
  for (const float logit : logits) sum += std::exp(static_cast<long double>(logit));
  for (const float logit : logits) out.push_back(std::exp(static_cast<long double>(logit)) / sum);
  return out;
}

// std::exp(float) is off by at most one unit in the last place, 6e-8 of each term and so of the sum.
constexpr double kExpError = 1e-7;

TEST(LogSoftmax, IsTheLogarithmOfProbabilities) {
  const std::vector<float> logits = random_logits(1001, 1);
  const std::vector<long double> expected = probabilities(logits);
  const LogProbabilities found = log_softmax(logits);
  for (Token token = 0; token < 1001; ++token) {
    EXPECT_NEAR(found[token], static_cast<double>(std::log(expected[static_cast<std::size_t>(token)])), kExpError);
  }
  EXPECT_EQ(found.top, std::max_element(logits.begin(), logits.end()) - logits.begin());
  EXPECT_EQ(log_softmax(std::vector<float>{1.0F, 3.0F, 3.0F}).top, 1);
}

TEST(LogSoftmax, RefusesWhatIsNoNumber) {
  constexpr float kInfinite = std::numeric_limits<float>::infinity();
  EXPECT_THROW(log_softmax(std::vector<float>{1.0F, NAN, 2.0F}), Error);
  EXPECT_THROW(log_softmax(std::vector<float>{NAN, 1.0F}), Error);
  EXPECT_THROW(log_softmax(std::vector<float>{1.0F, kInfinite}), Error);
  EXPECT_THROW(log_softmax(std::vector<float>{-kInfinite, -kInfinite}), Error);
  EXPECT_THROW(log_softmax(std::vector<float>{}), Error);
}

TEST(Divergence, OfOneTokenFollowsTheDefinition) {
  const std::vector<float> a = random_logits(500, 2);
  const std::vector<float> b = random_logits(500, 3);
  const auto p = probabilities(a);
  const auto q = probabilities(b);
  long double kld = 0.0L;
  for (std::size_t i = 0; i < p.size(); ++i) {
    if (std::log(p[i]) > -16.0L) kld += p[i] * (std::log(p[i]) - std::log(q[i]));
  }
  const TokenDivergence found = compare_distributions(log_softmax(a), log_softmax(b), 17);
  EXPECT_NEAR(found.kld, static_cast<double>(kld), 1e-6);
  EXPECT_NEAR(found.nll, -std::log(static_cast<double>(q[17])), kExpError);
  EXPECT_NEAR(found.nll_base, -std::log(static_cast<double>(p[17])), kExpError);
  EXPECT_NEAR(found.p_change, static_cast<double>(q[17] - p[17]), kExpError);
  EXPECT_FALSE(found.same_top);
  EXPECT_GT(found.kld, 1.0);
}

TEST(Divergence, OfADistributionFromItselfIsNothing) {
  const std::vector<float> a = random_logits(500, 4);
  const TokenDivergence found = compare_distributions(log_softmax(a), log_softmax(a), 3);
  EXPECT_EQ(found.kld, 0.0);
  EXPECT_EQ(found.p_change, 0.0);
  EXPECT_TRUE(found.same_top);
}

TEST(Divergence, LeavesOutWhatTheBaseFindsImpossible) {
  // The third token has e^-30 of the base's mass and all of the other's.
  const std::vector<float> a = {0.0F, 0.0F, -30.0F};
  const std::vector<float> b = {0.0F, 0.0F, 30.0F};
  const double log_q = -30.0 - std::log1p(2.0 * std::exp(-30.0));
  EXPECT_NEAR(compare_distributions(log_softmax(a), log_softmax(b), 0).kld, std::log(0.5) - log_q, 1e-6);
}

TEST(Divergence, SummaryFollowsTheFormulae) {
  DivergenceSums sums;
  std::mt19937 random(5);
  std::uniform_real_distribution<double> unit(0.1, 1.0);
  std::vector<double> nll, base, kld, change;
  const int n = 1001;
  int same = 0;
  for (int i = 0; i < n; ++i) {
    nll.push_back(3.0 * unit(random));
    base.push_back(0.5 * nll.back() + unit(random));
    kld.push_back(unit(random) * unit(random));
    change.push_back(unit(random) - 0.6);
    same += i % 3 != 0 ? 1 : 0;
    sums.add({nll.back(), base.back(), kld.back(), change.back(), i % 3 != 0});
  }
  const auto mean = [&](const auto& f) {
    double sum = 0.0;
    for (int i = 0; i < n; ++i) sum += f(static_cast<std::size_t>(i));
    return sum / n;
  };
  const double m = mean([&](auto i) { return nll[i]; });
  const double mb = mean([&](auto i) { return base[i]; });
  const double e = std::sqrt(mean([&](auto i) { return (nll[i] - m) * (nll[i] - m); }) / (n - 1));
  const double eb = std::sqrt(mean([&](auto i) { return (base[i] - mb) * (base[i] - mb); }) / (n - 1));
  const double cov = mean([&](auto i) { return (nll[i] - m) * (base[i] - mb); }) / (n - 1);
  const DivergenceSummary found = sums.summary();
  constexpr double kRounding = 1e-9;  // sums of 1001 doubles of order 1; squares lose three digits in the variance
  EXPECT_NEAR(found.perplexity.value, std::exp(m), kRounding);
  EXPECT_NEAR(found.perplexity.error, std::exp(m) * e, kRounding);
  EXPECT_NEAR(found.perplexity_base.value, std::exp(mb), kRounding);
  EXPECT_NEAR(found.correlation, cov / (e * eb), kRounding);
  EXPECT_NEAR(found.log_ratio.value, m - mb, kRounding);
  EXPECT_NEAR(found.log_ratio.error, std::sqrt(e * e + eb * eb - 2 * cov), kRounding);
  EXPECT_NEAR(found.ratio.value, std::exp(m - mb), kRounding);
  EXPECT_NEAR(found.difference.value, std::exp(m) - std::exp(mb), kRounding);
  const double d = std::exp(m) * e;
  const double db = std::exp(mb) * eb;
  EXPECT_NEAR(found.difference.error, std::sqrt(d * d + db * db - 2 * std::exp(m + mb) * cov), kRounding);
  std::sort(kld.begin(), kld.end());
  EXPECT_EQ(found.kld_percentiles[0], static_cast<float>(kld.back()));
  EXPECT_EQ(found.kld_percentiles[1], static_cast<float>(kld[999]));  // 0.999 * 1000
  EXPECT_EQ(found.kld_percentiles[5], static_cast<float>(kld[500]));
  EXPECT_EQ(found.kld_percentiles[10], static_cast<float>(kld.front()));
  const double rms = std::sqrt(mean([&](auto i) { return change[i] * change[i]; }));
  EXPECT_NEAR(found.p_change_rms.value, rms, kRounding);
  const double s = static_cast<double>(same) / n;
  EXPECT_NEAR(found.same_top.value, s, kRounding);
  EXPECT_NEAR(found.same_top.error, std::sqrt(s * (1 - s) / (n - 1)), kRounding);
}

TEST(SampleSums, PercentilesAreLinear) {
  EXPECT_EQ(percentile({}, 0.5), 0.0);
  EXPECT_EQ(percentile({2.0F}, 0.9), 2.0);
  EXPECT_EQ(percentile({1.0F, 2.0F, 4.0F}, 0.0), 1.0);
  EXPECT_EQ(percentile({1.0F, 2.0F, 4.0F}, 1.0), 4.0);
  EXPECT_EQ(percentile({1.0F, 2.0F, 4.0F}, 0.75), 3.0);
  EXPECT_EQ(percentile({1.0F, 2.0F}, 0.5), 1.5);
}

TEST(Divergence, OfNothing) { EXPECT_EQ(DivergenceSums().summary().count, 0); }

}  // namespace
}  // namespace razorkv
