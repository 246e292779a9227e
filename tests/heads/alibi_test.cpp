#include "heads/alibi.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace razorkv {
namespace {

TEST(AlibiSlopes, PowersOfTwoAndOthers) {
  const std::vector<double> eight = alibi_slopes(8);
  for (int h = 0; h < 8; ++h) EXPECT_NEAR(eight[static_cast<std::size_t>(h)], std::pow(0.5, h + 1), 1e-15);
  const std::vector<double> twelve = alibi_slopes(12);  // 8, then the 1st, 3rd, 5th, 7th of 16
  ASSERT_EQ(twelve.size(), 12U);
  EXPECT_NEAR(twelve[7], std::pow(0.5, 8.0), 1e-15);
  for (int i = 0; i < 4; ++i) EXPECT_NEAR(twelve[static_cast<std::size_t>(8 + i)], std::pow(2.0, -0.5 - i), 1e-15);
}

TEST(QkNorms, KnownMatrices) {
  // q = (2 x0, 0), k = (3 y1, 5 y2): Wq^T Wk has the single entry 6 at (0, 1).
  const std::vector<float> q{2, 0, 0, 0, 0, 0};
  const std::vector<float> k{0, 3, 0, 0, 0, 5};
  const HeadWeights head{q, k, 2, 3};
  EXPECT_NEAR(qk_spectral_norm(head), 6.0, 1e-9);
  EXPECT_NEAR(qk_max_abs(head), 6.0, 1e-12);
  const std::vector<float> zero(6, 0.0F);
  EXPECT_EQ(qk_spectral_norm({zero, k, 2, 3}), 0.0);
}

TEST(QkNorms, SpectralNormBoundsAndIsReached) {
  std::mt19937 rng(5);
  std::normal_distribution<float> normal;
  constexpr std::int64_t width = 4, embedding = 12;
  std::vector<float> q(width * embedding), k(width * embedding);
  for (float& x : q) x = normal(rng);
  for (float& x : k) x = normal(rng);
  const double norm = qk_spectral_norm({q, k, width, embedding});
  // Independent: alternate y := M^T x, x := M y on the full matrix; the gain tends to the norm from below.
  std::vector<double> m(embedding * embedding, 0.0);
  for (std::int64_t a = 0; a < embedding; ++a) {
    for (std::int64_t b = 0; b < embedding; ++b) {
      for (std::int64_t i = 0; i < width; ++i) {
        m[static_cast<std::size_t>(a * embedding + b)] += double{q[static_cast<std::size_t>(i * embedding + a)]} *
                                                          double{k[static_cast<std::size_t>(i * embedding + b)]};
      }
    }
  }
  std::vector<double> x(embedding, 1.0), y(embedding);
  double gain = 0.0;
  for (int step = 0; step < 2000; ++step) {
    double size = 0.0;
    for (const double value : x) size += value * value;
    for (double& value : x) value /= std::sqrt(size);
    for (std::size_t b = 0; b < y.size(); ++b) {
      y[b] = 0.0;
      for (std::size_t a = 0; a < x.size(); ++a) y[b] += m[a * y.size() + b] * x[a];
    }
    gain = 0.0;
    for (const double value : y) gain += value * value;
    for (std::size_t a = 0; a < x.size(); ++a) {
      x[a] = 0.0;
      for (std::size_t b = 0; b < y.size(); ++b) x[a] += m[a * y.size() + b] * y[b];
    }
  }
  EXPECT_NEAR(norm, std::sqrt(gain), 1e-8 * norm);
}

TEST(AlibiWindow, InputBounds) {
  const std::vector<float> gamma{3, -4, 0, 0}, beta{0, 0, 2, 0};
  EXPECT_NEAR(alibi_input_bound(AlibiBound::paper, gamma, beta), 25.0 + 4.0, 1e-12);
  EXPECT_NEAR(alibi_input_bound(AlibiBound::rigorous, gamma, beta), (2.0 * 4 + 2) * (2.0 * 4 + 2), 1e-12);
  EXPECT_NEAR(alibi_input_bound(AlibiBound::paper, gamma, {}), 25.0, 1e-12);
}

TEST(AlibiWindow, FormulaOfTheTheorem) {
  const double window = alibi_window(2.0, 10.0, 0.125, 1e-3, 0.25);
  EXPECT_NEAR(window, (5.0 - std::log(1e-3)) / 0.25, 1e-12);
  EXPECT_EQ(alibi_window_rows(window), 48);  // 47.63
  EXPECT_EQ(alibi_window_rows(-3.0), 1);
}

TEST(AlibiWindow, RigorousBoundHoldsForTheAttentionItself) {
  // One head, inputs on the bound's sphere: attention at distance L against the token itself is at most eps.
  std::mt19937 rng(11);
  std::normal_distribution<float> normal;
  constexpr std::int64_t width = 4, embedding = 8;
  std::vector<float> q(width * embedding), k(width * embedding);
  for (float& x : q) x = normal(rng);
  for (float& x : k) x = normal(rng);
  const std::vector<float> gamma(embedding, 1.5F);
  const double b2 = alibi_input_bound(AlibiBound::rigorous, gamma, {});
  const double scale = 0.5, slope = 0.125, epsilon = 1e-4;
  const double window = alibi_window(qk_spectral_norm({q, k, width, embedding}), b2, scale, epsilon, slope);
  const auto project = [&](const std::vector<float>& w, const std::vector<double>& x) {
    std::vector<double> y(width, 0.0);
    for (std::size_t i = 0; i < y.size(); ++i) {
      for (std::size_t e = 0; e < x.size(); ++e) y[i] += double{w[i * x.size() + e]} * x[e];
    }
    return y;
  };
  const auto sphere = [&] {
    std::vector<double> x(embedding);
    double size = 0.0;
    for (double& value : x) {
      value = double{normal(rng)};
      size += value * value;
    }
    for (double& value : x) value *= std::sqrt(b2 / size);
    return x;
  };
  for (int trial = 0; trial < 500; ++trial) {
    const std::vector<double> own = sphere(), far = sphere();
    const std::vector<double> query = project(q, own), own_key = project(k, own), far_key = project(k, far);
    double difference = -slope * window;
    for (std::size_t i = 0; i < query.size(); ++i) difference += scale * query[i] * (far_key[i] - own_key[i]);
    EXPECT_LE(std::exp(difference), epsilon * (1 + 1e-9));
  }
}

TEST(AlibiWindow, VendorFormula) {
  const std::vector<double> layers{4.0, 81.0, 25.0};
  EXPECT_EQ(alibi_vendor_window(layers, 0.5), static_cast<std::int64_t>((std::log(1e-5) + 9.0 + 100.0) / 0.5));
  EXPECT_EQ(alibi_vendor_window(layers, 0.5), 194);  // (109 - 11.5129) * 2 = 194.97
}

}  // namespace
}  // namespace razorkv
