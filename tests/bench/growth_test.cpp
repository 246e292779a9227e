#include "bench/growth.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace razorkv::bench {
namespace {

BenchRow decode(std::int64_t depth, double bytes, double seconds) {
  BenchRow row;
  row.test = {false, 32, depth};
  row.speed = {0.5 / seconds, 1.0 / seconds, 9.0 / seconds};  // the median counts
  row.kv_read = bytes;
  return row;
}

TEST(Growth, FindsBaseAndRateOfALine) {
  BenchResult result;
  // 10 ms and 20 GB/s.
  for (const double bytes : {0.0, 1e8, 4e8}) result.rows.push_back(decode(0, bytes, 0.010 + bytes / 20e9));
  BenchRow prefill = decode(0, 0.0, 7.0);
  prefill.test.prefill = true;
  BenchRow other = decode(0, 5e8, 3.0);
  other.test.tokens = 64;
  result.rows.push_back(prefill);
  result.rows.push_back(other);
  const std::optional<Growth> growth = decode_growth(result, 32);
  ASSERT_TRUE(growth.has_value());
  EXPECT_NEAR(growth->base, 0.010, 1e-12);
  EXPECT_NEAR(growth->rate / 20e9, 1.0, 1e-9);
  EXPECT_NEAR(growth->fit, 1.0, 1e-9);
}

TEST(Growth, SaysHowFarPointsLieFromTheLine) {
  BenchResult result;
  // Slope 1.5 s a unit: products 3, squares of x 2, of y 14 / 3.
  result.rows = {decode(0, 0.0, 1.0), decode(1, 1.0, 2.0), decode(2, 2.0, 4.0)};
  const std::optional<Growth> growth = decode_growth(result, 32);
  ASSERT_TRUE(growth.has_value());
  EXPECT_NEAR(growth->rate, 2.0 / 3.0, 1e-12);
  EXPECT_NEAR(growth->base, 5.0 / 6.0, 1e-12);
  EXPECT_NEAR(growth->fit, 9.0 / (2.0 * 14.0 / 3.0), 1e-12);
}

TEST(Growth, NeedsThreeDepthsAndGrowth) {
  BenchResult result;
  result.rows = {decode(0, 0.0, 1.0), decode(1, 1.0, 2.0)};
  EXPECT_FALSE(decode_growth(result, 32).has_value());
  result.rows.push_back(decode(2, 2.0, 0.5));
  EXPECT_FALSE(decode_growth(result, 32).has_value());  // faster with more bytes
  result.rows = {decode(0, 1.0, 1.0), decode(1, 1.0, 2.0), decode(2, 1.0, 3.0)};
  EXPECT_FALSE(decode_growth(result, 32).has_value());  // a policy that keeps the same at every depth
}

}  // namespace
}  // namespace razorkv::bench
