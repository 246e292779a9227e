#include "heads/head_scores.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <thread>

namespace razorkv {
namespace {

struct Case {
  std::int64_t prefix, block, repeats, heads, kv_heads;
  float soft_cap;
};

/// Random queries and keys, and the scores from the whole attention matrix in double precision.
struct Oracle {
  explicit Oracle(const Case& shape) : c(shape), n(c.prefix + c.block * c.repeats) {
    std::mt19937 rng(static_cast<std::uint32_t>(17 + c.block * 31 + c.heads));
    std::normal_distribution<float> normal;
    q.resize(static_cast<std::size_t>(n * c.heads * width));
    k.resize(static_cast<std::size_t>(n * c.kv_heads * width));
    for (float& x : q) x = normal(rng);
    for (float& x : k) x = normal(rng);
    lse.resize(static_cast<std::size_t>(n * c.heads));
    for (std::int64_t head = 0; head < c.heads; ++head) score(head);
  }

  double logit(std::int64_t head, std::int64_t i, std::int64_t j) const {
    const std::int64_t kv_head = head / (c.heads / c.kv_heads);
    double sum = 0.0;
    for (std::int64_t e = 0; e < width; ++e) {
      sum += double{q[static_cast<std::size_t>((i * c.heads + head) * width + e)]} *
             double{k[static_cast<std::size_t>((j * c.kv_heads + kv_head) * width + e)]};
    }
    sum *= double{scale};
    return c.soft_cap > 0 ? double{c.soft_cap} * std::tanh(sum / double{c.soft_cap}) : sum;
  }

  void score(std::int64_t head) {
    std::vector<std::vector<double>> a(static_cast<std::size_t>(n));
    for (std::int64_t i = 0; i < n; ++i) {
      double total = 0.0;
      for (std::int64_t j = 0; j <= i; ++j) total += std::exp(logit(head, i, j));
      lse[static_cast<std::size_t>(i * c.heads + head)] = static_cast<float>(std::log(total));
      for (std::int64_t j = 0; j <= i; ++j)
        a[static_cast<std::size_t>(i)].push_back(std::exp(logit(head, i, j)) / total);
    }
    // Without the prefix row and column, as the definition has it.
    a.erase(a.begin(), a.begin() + c.prefix);
    for (auto& row : a) row.erase(row.begin(), row.begin() + c.prefix);
    double echo_sum = 0.0, induction_sum = 0.0;
    std::int64_t rows = 0;
    for (std::int64_t i = c.block; i < c.block * c.repeats; ++i, ++rows) {
      for (std::int64_t copies = 1; i - copies * c.block >= 0; ++copies) {
        echo_sum += a[static_cast<std::size_t>(i)][static_cast<std::size_t>(i - copies * c.block)];
        induction_sum += a[static_cast<std::size_t>(i)][static_cast<std::size_t>(i - copies * c.block + 1)];
      }
    }
    echo.push_back(echo_sum / static_cast<double>(rows));
    induction.push_back(induction_sum / static_cast<double>(rows));
  }

  static constexpr std::int64_t width = 8;
  static constexpr float scale = 0.4F;
  Case c;
  std::int64_t n;
  std::vector<float> q, k, lse;
  std::vector<double> echo, induction;
};

HeadScores streamed(const Oracle& oracle, std::int64_t batch, std::int64_t threads) {
  const Case& c = oracle.c;
  HeadShape shape;
  shape.head_width = Oracle::width;
  shape.layers = {{c.heads, c.kv_heads, false}, {c.heads, c.kv_heads, false}};
  ScoringPrompt prompt;
  prompt.prefix = c.prefix;
  prompt.block = c.block;
  prompt.repeats = c.repeats;
  HeadScoreSum sum(shape, prompt);
  for (std::int64_t begin = 0; begin < oracle.n; begin += batch) {
    ScoredRows rows;
    rows.layer = 1;  // layer 0 gets nothing and must stay zero
    rows.begin = begin;
    rows.rows = std::min(batch, oracle.n - begin);
    rows.q = oracle.q.data() + begin * c.heads * Oracle::width;
    rows.lse = oracle.lse.data() + begin * c.heads;
    rows.scale = Oracle::scale;
    rows.soft_cap = c.soft_cap;
    rows.read_key = [&](std::int64_t kv_head, std::int64_t position, float* key) {
      EXPECT_LT(position, begin + rows.rows);
      const float* row = oracle.k.data() + (position * c.kv_heads + kv_head) * Oracle::width;
      std::copy(row, row + Oracle::width, key);
    };
    std::vector<std::thread> workers;
    for (std::int64_t ith = 0; ith < threads; ++ith) workers.emplace_back([&, ith] { sum.add(rows, ith, threads); });
    for (std::thread& worker : workers) worker.join();
  }
  return sum.mean();
}

TEST(HeadScoreSum, EqualsTheWholeAttentionMatrix) {
  for (const Case& c : {Case{1, 9, 4, 6, 2, 0.0F}, Case{0, 9, 4, 6, 3, 0.0F}, Case{1, 1, 3, 2, 2, 0.0F},
                        Case{1, 12, 2, 7, 1, 3.0F}, Case{1, 5, 5, 4, 4, 0.0F}}) {
    const Oracle oracle(c);
    for (const std::int64_t batch : {1, 4, 9, 1000}) {
      for (const std::int64_t threads : {1, 2, 5}) {
        const HeadScores scores = streamed(oracle, batch, threads);
        for (std::size_t head = 0; head < oracle.echo.size(); ++head) {
          // Only the log-sum-exp is float32: it is below 8 here, half an ulp of it is 2.4e-7, relative error of exp.
          EXPECT_NEAR(scores.echo[1][head], oracle.echo[head], 1e-6 * oracle.echo[head]) << head;
          EXPECT_NEAR(scores.induction[1][head], oracle.induction[head], 1e-6 * oracle.induction[head]) << head;
          EXPECT_EQ(scores.echo[0][head], 0.0);
        }
      }
    }
  }
}

TEST(MeanScores, AveragesEachHead) {
  const HeadScores a{{{0.2, 0.4}}, {{0.0, 1.0}}};
  const HeadScores b{{{0.4, 0.0}}, {{0.5, 0.5}}};
  const HeadScores mean = mean_scores({a, b});
  EXPECT_NEAR(mean.induction[0][0], 0.3, 1e-15);
  EXPECT_NEAR(mean.induction[0][1], 0.2, 1e-15);
  EXPECT_NEAR(mean.echo[0][0], 0.25, 1e-15);
  EXPECT_NEAR(mean.echo[0][1], 0.75, 1e-15);
}

}  // namespace
}  // namespace razorkv
