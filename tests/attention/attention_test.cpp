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

// Logits of size 4 summed over 256 terms in float32 err by at most about 256 * 6e-8 * 4; measured worst case 3e-6.
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

}  // namespace
}  // namespace razorkv::test
