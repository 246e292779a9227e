#include "attention/attention_plan.h"

#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "attention_case.h"

namespace razorkv::test {
namespace {

// Several heads of one layer, [token][head][width] output with room between rows that must stay untouched.
struct Layer {
  explicit Layer(const std::vector<Shape>& head_shapes) : shapes(head_shapes) {
    std::uint32_t seed = 1;
    for (const Shape& shape : shapes) cases.push_back(std::make_unique<AttentionCase>(shape, seed++));
    std::int64_t stride = kGap;
    for (const Shape& shape : shapes) stride += shape.group * shape.width;
    std::int64_t rows = 0;
    for (const Shape& shape : shapes) rows = std::max(rows, shape.rows);
    out.assign(static_cast<std::size_t>(rows * stride), kUntouched);
    lse.assign(shapes.size(), std::vector<float>(static_cast<std::size_t>(rows) * 16, kUntouched));
    for (const auto& problem : cases) views.push_back(problem->kv());
    std::int64_t offset = 0;
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      heads.push_back({&views[i], cases[i]->query(), offset, stride, shapes[i].width, lse[i].data(), 16});
      offset += shapes[i].group * shapes[i].width;
    }
  }

  void compute(AttentionPlan& plan, int threads) {
    plan.build(heads, threads);
    std::vector<std::thread> workers;
    for (int t = 0; t < threads; ++t) workers.emplace_back([&, t] { plan.run(t, out.data()); });
    for (std::thread& worker : workers) worker.join();
    workers.clear();
    for (int t = 0; t < threads; ++t) workers.emplace_back([&, t] { plan.merge(t, threads, out.data()); });
    for (std::thread& worker : workers) worker.join();
  }

  void expect_right() const {
    for (std::size_t i = 0; i < heads.size(); ++i) {
      for (std::int64_t r = 0; r < shapes[i].rows; ++r) {
        for (std::int64_t g = 0; g < shapes[i].group; ++g) {
          const RefOutput expected = cases[i]->expected(r, g);
          const float* row = out.data() + heads[i].out_offset + r * heads[i].out_row_stride + g * shapes[i].width;
          double worst = 0.0;
          for (std::size_t d = 0; d < expected.out.size(); ++d) {
            const double error = std::fabs(row[d] - expected.out[d]);
            worst = error <= worst ? worst : std::isnan(error) ? 1e30 : error;
          }
          ASSERT_LE(worst, 2e-5) << "head " << i << " row " << r << " query head " << g;
          const float log_sum = lse[i][static_cast<std::size_t>(r * 16 + g)];
          if (std::isinf(expected.log_sum)) {
            EXPECT_EQ(log_sum, -std::numeric_limits<float>::infinity());
          } else {
            EXPECT_NEAR(log_sum, expected.log_sum, 2e-5 * std::fmax(1.0, std::fabs(expected.log_sum)));
          }
        }
      }
    }
    for (std::size_t at = 0; at < out.size(); ++at) {
      const auto stride = static_cast<std::size_t>(heads[0].out_row_stride);
      if (at % stride >= stride - kGap) {
        ASSERT_EQ(out[at], kUntouched);
      }
    }
  }

  static constexpr std::int64_t kGap = 5;
  static constexpr float kUntouched = 12345.0F;
  std::vector<Shape> shapes;
  std::vector<std::unique_ptr<AttentionCase>> cases;
  std::vector<KvHeadView> views;
  std::vector<PlanHead> heads;
  std::vector<float> out;
  std::vector<std::vector<float>> lse;
};

TEST(AttentionPlan, DecodeOverRaggedHeads) {
  AttentionPlan plan;
  for (const int threads : {1, 2, 3, 4, 7, 16}) {
    Layer layer({{.type = RowType::f16, .width = 64, .group = 3, .end = 5000},
                 {.type = RowType::f16,
                  .width = 64,
                  .group = 3,
                  .anchors = 4,
                  .begin = 4000,
                  .end = 4100,
                  .dropped = 3996,
                  .origin = 3968},
                 {.type = RowType::f16, .width = 64, .group = 3, .anchors = 1},
                 {.type = RowType::f16, .width = 64, .group = 3, .end = 1700}});
    layer.compute(plan, threads);
    layer.expect_right();
  }
}

TEST(AttentionPlan, PrefillOverRaggedHeads) {
  AttentionPlan plan;
  for (const int threads : {1, 2, 5}) {
    for (const std::int64_t group : {1, 7}) {
      Layer layer({{.width = 20, .group = group, .rows = 200, .end = 1},
                   {.width = 64,
                    .group = group,
                    .rows = 200,
                    .anchors = 2,
                    .begin = 100,
                    .end = 150,
                    .begin_step = 1,
                    .dropped = 98,
                    .origin = 64}});
      layer.compute(plan, threads);
      layer.expect_right();
    }
  }
}

TEST(AttentionPlan, HeadsOfDifferentWidthAndGroup) {
  AttentionPlan plan;
  for (const int threads : {1, 3}) {
    Layer layer({{.width = 128, .group = 1, .end = 3000}, {.width = 8, .group = 9, .rows = 2, .end = 900}});
    layer.compute(plan, threads);
    layer.expect_right();
  }
}

TEST(AttentionPlan, NothingVisibleIsZero) {
  AttentionPlan plan;
  Layer layer({{.width = 8, .group = 2}});
  layer.compute(plan, 2);
  layer.expect_right();
}

TEST(AttentionPlan, NoHeads) {
  AttentionPlan plan;
  plan.build({}, 2);
  plan.run(0, nullptr);
  plan.run(1, nullptr);
  plan.merge(0, 1, nullptr);
}

}  // namespace
}  // namespace razorkv::test
