#include "matmul/matmul.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "matmul/every_target.h"
#include "matmul/product_case.h"

namespace razorkv::test {
namespace {

class Matmul : public EveryTarget {};
INSTANTIATE_TEST_SUITE_P(Targets, Matmul, all_targets(), target_name);

std::string name_of(const ProductCase& c) {
  return std::string(ggml_type_name(c.type.ggml)) + " " + std::to_string(c.columns) + " x " + std::to_string(c.rows) +
         " x " + std::to_string(c.tokens);
}

TEST_P(Matmul, BlockShapesAreGgmls) {
  for (const TypePair& type : all_types()) {
    EXPECT_EQ(block_shape(type.ours).elements, ggml_blck_size(type.ggml));
    EXPECT_EQ(block_shape(type.ours).bytes, ggml_type_size(type.ggml));
  }
}

TEST_P(Matmul, EqualsDoublePrecisionAroundTileEdges) {
  for (const TypePair& type : all_types()) {
    const std::int64_t block = ggml_blck_size(type.ggml);
    for (const std::int64_t rows : {1, 5, 31, 32, 33, 70}) {
      for (const std::int64_t tokens : {1, 2, 3, 4, 5, 6, 7, 13}) {
        const ProductCase c(type, block == 32 ? 96 : 256, rows, tokens, static_cast<unsigned>(rows * 100 + tokens));
        expect_product(c, c.run(), name_of(c));
      }
    }
  }
}

// Panels end at 1024 columns.
TEST_P(Matmul, EqualsDoublePrecisionForManyColumns) {
  for (const TypePair& type : all_types()) {
    const std::int64_t block = ggml_blck_size(type.ggml);
    for (const std::int64_t columns : {std::int64_t{1024}, 1024 + block, 2048 + 3 * block}) {
      const ProductCase c(type, columns, 37, 8, 3);
      expect_product(c, c.run(), name_of(c));
    }
  }
}

TEST_P(Matmul, ZerosAndOutliersKeepTheirBlocksApart) {
  for (const TypePair& type : all_types()) {
    ProductCase c(type, 512, 34, 7, 9);
    for (std::size_t k = 0; k < 512; ++k) c.activations[512 + k] = 0.0F;         // token 1: all zero
    c.activations[2 * 512 + 40] = 1e6F;                                          // token 2: its block is coarse
    c.activations[3 * 512 + 40] = -1e30F;                                        // token 3
    for (std::size_t k = 0; k < 512; ++k) c.activations[4 * 512 + k] *= 1e-30F;  // token 4: small, and exact in scale
    const std::vector<float> found = c.run();
    for (std::int64_t t = 0; t < c.tokens; ++t) {
      for (std::int64_t r = 0; r < c.rows; ++r) {
        const auto value = static_cast<double>(found[static_cast<std::size_t>(t * c.rows + r)]);
        ASSERT_TRUE(std::fabs(value - c.exact(t, r)) <= c.bound(t, r)) << name_of(c) << " token " << t << " row " << r;
      }
    }
  }
}

TEST_P(Matmul, TinyBlocksBecomeZero) {
  ProductCase c(all_types()[4], 64, 3, 2, 4);
  for (float& x : c.activations) x = std::copysign(9e-37F, x);
  for (const float value : c.run()) EXPECT_EQ(value, 0.0F);
}

TEST_P(Matmul, NanAndInfinityStayInTheirTokens) {
  for (const TypePair& type : all_types()) {
    const ProductCase clean(type, 256, 33, 7, 8);
    ProductCase c = clean;
    c.activations[256 + 17] = std::numeric_limits<float>::quiet_NaN();
    c.activations[3 * 256 + 200] = std::numeric_limits<float>::infinity();
    c.activations[4 * 256 + 31] = -std::numeric_limits<float>::infinity();
    const std::vector<float> expected = clean.run();
    const std::vector<float> found = c.run();
    for (std::size_t i = 0; i < found.size(); ++i) {
      const std::size_t token = i / 33;
      if (token == 1 || token == 3 || token == 4) {
        ASSERT_TRUE(std::isnan(found[i])) << name_of(c) << " token " << token;
      } else {
        ASSERT_EQ(found[i], expected[i]) << name_of(c) << " token " << token;
      }
    }
  }
}

TEST_P(Matmul, RoundsToTheNearestOf255Steps) {
  const ProductCase c(all_types()[0], 96, 1, 11, 6);
  const std::vector<std::byte> rounded = c.rounded();
  const QuantisedRow row(c.columns);
  for (std::int64_t t = 0; t < c.tokens; ++t) {
    const std::byte* at = rounded.data() + static_cast<std::size_t>(t) * row.bytes;
    const auto* values = reinterpret_cast<const std::int8_t*>(at);
    const auto* scales = reinterpret_cast<const float*>(at + row.scales);
    const auto* sums = reinterpret_cast<const float*>(at + row.sums);
    const auto* counts = reinterpret_cast<const std::int32_t*>(at + row.counts);
    const auto* halves = reinterpret_cast<const std::int32_t*>(at + row.halves);
    for (std::int64_t b = 0; b < 3; ++b) {
      int sum[2] = {0, 0};
      int most = 0;
      for (std::int64_t k = 0; k < 32; ++k) {
        const int value = values[32 * b + k];
        sum[k / 16] += value;
        most = std::max(most, std::abs(value));
        const double x = static_cast<double>(c.activation_row(t)[32 * b + k]);
        ASSERT_LE(std::fabs(x - static_cast<double>(scales[b]) * value), 0.5001 * static_cast<double>(scales[b]));
      }
      EXPECT_EQ(most, 127);
      EXPECT_EQ(halves[2 * b], -sum[0]);
      EXPECT_EQ(halves[2 * b + 1], -sum[1]);
      EXPECT_EQ(counts[b], -sum[0] - sum[1]);
      EXPECT_FLOAT_EQ(sums[b], scales[b] * static_cast<float>(sum[0] + sum[1]));
    }
  }
}

TEST(MatmulThreads, SharesOfRowsGiveTheSame) {
  for (const TypePair& type : all_types()) {
    const ProductCase c(type, 256, 150, 9, 12);
    const std::vector<float> expected = c.run();
    const std::vector<std::byte> x = c.rounded();
    std::vector<float> found(expected.size());
    std::vector<std::thread> threads;
    for (std::int64_t begin = 0; begin < c.rows; begin += 64) {
      threads.emplace_back([&, begin] {
        multiply({type.ours, c.columns, c.blocks.data(), x.data(), c.tokens, found.data(), c.rows}, begin,
                 std::min(begin + 64, c.rows));
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(found, expected) << name_of(c);
    multiply({type.ours, c.columns, c.blocks.data(), x.data(), c.tokens, nullptr, c.rows}, 7, 7);  // nothing to do
  }
}

}  // namespace
}  // namespace razorkv::test
