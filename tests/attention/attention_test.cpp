#include "attention/attention.h"

#include <gtest/gtest.h>

#include <cmath>

#include "attention/state.h"
#include "attention_case.h"
#include "every_target.h"

namespace razorkv::test {
namespace {

// Largest error of an output element, relative to max(1, largest expected element). NaN gives infinity.
double worst_error(const AttentionCase& problem, States& states, const Shape& shape) {
  double worst = 0.0;
  std::vector<float> out(static_cast<std::size_t>(shape.width));
  for (std::int64_t r = 0; r < shape.rows; ++r) {
    for (std::int64_t g = 0; g < shape.group; ++g) {
      const auto i = static_cast<std::size_t>(r * shape.group + g);
      const RefOutput expected = problem.expected(r, g);
      finish_state(out.data(), states.o.data() + i * out.size(), states.l[i], shape.width);
      double size = 1.0;
      for (double x : expected.out) size = std::fmax(size, std::fabs(x));
      for (std::size_t d = 0; d < out.size(); ++d) {
        const double error = std::fabs(out[d] - expected.out[d]) / size;
        worst = error <= worst ? worst : std::isnan(error) ? std::numeric_limits<double>::infinity() : error;
      }
      if (std::isinf(expected.log_sum)) {
        if (states.l[i] != 0.0F || !std::isinf(states.m[i])) worst = std::numeric_limits<double>::infinity();
        continue;
      }
      const double log_sum = states.m[i] + std::log(states.l[i]);
      const double error = std::fabs(log_sum - expected.log_sum) / std::fmax(1.0, std::fabs(expected.log_sum));
      worst = error <= worst ? worst : std::isnan(error) ? std::numeric_limits<double>::infinity() : error;
    }
  }
  return worst;
}

// Logits of size 4 summed over 256 terms in float32 err by at most about 256 * 6e-8 * 4: 6e-5 at worst, far less where
// signs are random.
constexpr double kTolerance = 2e-5;

void expect_right(const Shape& shape, double tolerance = kTolerance) {
  const AttentionCase problem(shape);
  States states = run(problem, problem.whole());
  EXPECT_LE(worst_error(problem, states, shape), tolerance)
      << "width " << shape.width << " group " << shape.group << " rows " << shape.rows << " anchors " << shape.anchors
      << " begin " << shape.begin << " end " << shape.end << " dropped " << shape.dropped << " f16 "
      << (shape.type == RowType::f16) << " target " << attention_target();
}

class Attention : public EveryTarget {};
INSTANTIATE_TEST_SUITE_P(Targets, Attention, all_targets(), target_name);

TEST_P(Attention, EveryWidthTypeAndGroup) {
  for (const RowType type : {RowType::f32, RowType::f16}) {
    for (const std::int64_t width : {1, 7, 8, 20, 48, 64, 80, 96, 100, 128, 256}) {
      for (const std::int64_t group : {1, 3, 4, 7, 8}) {
        expect_right({.type = type,
                      .width = width,
                      .group = group,
                      .rows = 2,
                      .anchors = 4,
                      .begin = 70,
                      .end = 135,
                      .begin_step = 1,
                      .dropped = 66,
                      .origin = 64});
      }
    }
  }
}

TEST_P(Attention, CountsAroundLanesTilesAndPages) {
  for (const RowType type : {RowType::f32, RowType::f16}) {
    for (const std::int64_t end : {0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 127, 128, 129, 300}) {
      expect_right({.type = type, .width = 20, .group = 3, .rows = 3, .end = end});
      expect_right({.type = type, .width = 64, .group = 1, .rows = 70, .anchors = end, .end = 1});
    }
  }
}

TEST_P(Attention, MovingWindow) {
  for (const std::int64_t window : {1, 5, 64, 100}) {
    expect_right({.type = RowType::f16,
                  .width = 64,
                  .group = 3,
                  .rows = 150,
                  .anchors = 4,
                  .begin = 130,
                  .end = 130 + window,
                  .begin_step = 1,
                  .dropped = 126,
                  .origin = 128});
  }
}

TEST_P(Attention, SoftCap) {
  for (const float cap : {1.0F, 30.0F}) {
    expect_right({.width = 64,
                  .group = 4,
                  .rows = 5,
                  .anchors = 3,
                  .begin = 3,
                  .end = 90,
                  .dropped = 50,
                  .soft_cap = cap,
                  .size = 8.0F});
  }
}

TEST_P(Attention, SlicesMergeToTheWhole) {
  const Shape shape{.type = RowType::f16,
                    .width = 64,
                    .group = 3,
                    .rows = 2,
                    .anchors = 4,
                    .begin = 100,
                    .end = 900,
                    .begin_step = 1,
                    .dropped = 96,
                    .origin = 64};
  const AttentionCase problem(shape);
  const auto part = [&](std::int64_t begin, std::int64_t end, bool extras) {
    return run(problem, {0, shape.rows, begin, end, extras});
  };
  const auto merge = [&](States a, const States& b) {
    for (std::size_t i = 0; i < a.m.size(); ++i) {
      merge_state(a.o.data() + i * 64, a.m[i], a.l[i], b.o.data() + i * 64, b.m[i], b.l[i], 64);
    }
    return a;
  };
  const States extras = part(0, 0, true);
  const States first = part(0, 333, false);
  const States second = part(333, 640, false);
  const States third = part(640, 5000, false);
  const States nothing = part(50, 60, false);
  States left = merge(merge(merge(merge(nothing, extras), first), second), third);
  States right = merge(extras, merge(nothing, merge(first, merge(second, merge(third, nothing)))));
  EXPECT_LE(worst_error(problem, left, shape), kTolerance);
  EXPECT_LE(worst_error(problem, right, shape), kTolerance);
  for (std::size_t i = 0; i < nothing.m.size(); ++i) {
    EXPECT_EQ(nothing.m[i], -std::numeric_limits<float>::infinity());
    EXPECT_EQ(nothing.l[i], 0.0F);
  }
  for (const float x : nothing.o) EXPECT_EQ(x, 0.0F);
}

TEST_P(Attention, SliceOfQueryRows) {
  const Shape shape{.width = 20, .group = 3, .rows = 90, .anchors = 2, .begin = 2, .end = 5};
  const AttentionCase problem(shape);
  const States whole = run(problem, problem.whole());
  const States part = run(problem, {17, 80, 0, 1000, true});
  for (std::size_t i = 0; i < part.o.size(); ++i) EXPECT_NEAR(part.o[i], whole.o[i + 17 * 3 * 20], 1e-4);
  for (std::size_t i = 0; i < part.m.size(); ++i) EXPECT_NEAR(part.m[i], whole.m[i + 17 * 3], 1e-5);
}

// Logits of about +-1e4. Their float32 rounding (2^-24 * 1e4 = 6e-4) is the tolerance.
TEST_P(Attention, ExtremeLogitsStayFinite) {
  for (const std::int64_t group : {1, 9}) {
    const Shape shape{
        .width = 64, .group = group, .rows = 3, .anchors = 4, .begin = 10, .end = 300, .dropped = 6, .size = 4000.0F};
    const AttentionCase problem(shape);
    States states = run(problem, problem.whole());
    EXPECT_LE(worst_error(problem, states, shape), 5e-3);
  }
}

TEST_P(Attention, LongContextInHalf) {
  for (const std::int64_t group : {1, 9}) {
    const Shape shape{.type = RowType::f16, .width = 8, .group = group, .end = 131072};
    const AttentionCase problem(shape);
    States states = run(problem, problem.whole());
    std::vector<float> out(8);
    for (const std::int64_t g : {std::int64_t{0}, group - 1}) {
      const RefOutput expected = problem.expected(0, g);
      finish_state(out.data(), states.o.data() + g * 8, states.l[static_cast<std::size_t>(g)], 8);
      double error = 0.0;
      double size = 0.0;
      for (std::size_t i = 0; i < 8; ++i) {
        error += std::pow(out[i] - expected.out[i], 2);
        size += std::pow(expected.out[i], 2);
      }
      EXPECT_LE(std::sqrt(error / size), 1e-3);
    }
  }
}

// O3 and row 14 at the level of logits: the compensation row weighs exactly N, whatever the scale and the soft-cap.
TEST_P(Attention, CompensationRowWeighsItsCount) {
  for (const std::int64_t n : {1, 2, 3, 8, 32, 1000}) {
    for (const float cap : {0.0F, 2.0F}) {
      const Shape shape{
          .width = 64, .group = 2, .rows = 1, .anchors = 1, .begin = 1, .end = 3, .dropped = n, .soft_cap = cap};
      const AttentionCase problem(shape);
      States states = run(problem, problem.whole());
      EXPECT_LE(worst_error(problem, states, shape), kTolerance) << n << " " << cap;

      const States alone = run(problem, {0, 1, 0, 0, true});
      Shape without = shape;
      without.dropped = 0;
      const AttentionCase bare(without);
      const States anchor = run(bare, {0, 1, 0, 0, true});
      // weight of the row = sum with it - sum without it = N exp(capped logit)
      for (std::size_t g = 0; g < 2; ++g) {
        double logit = 0.0;
        for (std::size_t i = 0; i < 64; ++i) {
          logit += static_cast<double>(problem.query().q[g * 67 + i]) * problem.kv().comp_k[i];
        }
        logit *= 0.125;
        if (cap > 0.0F) logit = cap * std::tanh(logit / cap);
        const double weight = alone.l[g] * std::exp(alone.m[g]) - anchor.l[g] * std::exp(anchor.m[g]);
        EXPECT_NEAR(weight / std::exp(logit), static_cast<double>(n), 1e-4 * static_cast<double>(n)) << cap;
      }
    }
  }
}

// O6: what no query row sees may hold anything; two fillings of it give the same bits.
TEST_P(Attention, CompensationOfRowsWithoutOneIsNotRead) {
  const Shape shape{.width = 64, .group = 2, .rows = 3, .end = 60};
  AttentionCase problem(shape);
  const States before = run(problem, problem.whole());
  std::fill(problem.comp_k().begin(), problem.comp_k().end(), std::nanf(""));
  std::fill(problem.comp_v().begin(), problem.comp_v().end(), std::nanf(""));
  EXPECT_EQ(run(problem, problem.whole()).o, before.o);
}

// Query rows before the first paged row: they see anchors only, and the unwritten start of the page is not theirs.
TEST_P(Attention, QueryRowsWithoutPagedRows) {
  const Shape shape{.width = 64, .group = 3, .rows = 20, .anchors = 2, .begin = 4, .end = 5};
  AttentionCase problem(shape);
  for (std::size_t r = 0; r < 4; ++r) problem.visible()[r].end = problem.visible()[r].begin = static_cast<long>(r) + 1;
  States states = run(problem, problem.whole());
  for (std::int64_t r = 0; r < 20; ++r) {
    const RefOutput expected = problem.expected(r, 1);
    std::vector<float> out(64);
    const auto i = static_cast<std::size_t>(r * 3 + 1);
    finish_state(out.data(), states.o.data() + i * 64, states.l[i], 64);
    for (std::size_t d = 0; d < 64; ++d) ASSERT_NEAR(out[d], expected.out[d], kTolerance);
  }
}

TEST(AttentionComparator, FailsOnNan) {
  const Shape shape{.width = 8, .end = 5};
  const AttentionCase problem(shape);
  States states = run(problem, problem.whole());
  EXPECT_LE(worst_error(problem, states, shape), kTolerance);
  states.o[3] = std::nanf("");
  EXPECT_GT(worst_error(problem, states, shape), 1.0);
}

TEST(MergeState, TwoEmptyStatesAreEmpty) {
  float o_a[2] = {0.0F, 0.0F};
  const float o_b[2] = {0.0F, 0.0F};
  float m = -std::numeric_limits<float>::infinity();
  float l = 0.0F;
  merge_state(o_a, m, l, o_b, m, l, 2);
  EXPECT_EQ(m, -std::numeric_limits<float>::infinity());
  EXPECT_EQ(l, 0.0F);
  finish_state(o_a, o_a, l, 2);
  EXPECT_EQ(o_a[0], 0.0F);
}

}  // namespace
}  // namespace razorkv::test
