#include "heads/bounded_draw.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

namespace razorkv {
namespace {

// 6,000 draws with 6 equally likely results: 1,000 each, deviation 29. The bounds are 6 deviations.
void expect_even(const std::map<std::pair<int, int>, int>& counts) {
  EXPECT_EQ(counts.size(), 6U);
  for (const auto& [result, count] : counts) EXPECT_LT(std::abs(count - 1000), 174) << result.first << result.second;
}

TEST(BoundedDraw, IsEven) {
  std::mt19937_64 rng(1);
  std::map<std::pair<int, int>, int> counts;
  for (int i = 0; i < 6000; ++i) ++counts[{static_cast<int>(bounded_draw(rng, 6)), 0}];
  expect_even(counts);
  EXPECT_EQ(bounded_draw(rng, 1), 0U);
  // Values from 2^63 on are rejected here, not folded onto the low half.
  for (int i = 0; i < 1000; ++i) EXPECT_LT(bounded_draw(rng, (1ULL << 63) + 1), (1ULL << 63) + 1);
}

TEST(DrawToFront, EveryOrderedPairIsEquallyLikely) {
  std::mt19937_64 rng(2);
  std::map<std::pair<int, int>, int> counts;
  for (int i = 0; i < 6000; ++i) {
    std::vector<int> items{0, 1, 2};
    draw_to_front(rng, items, 2);
    ++counts[{items[0], items[1]}];
  }
  expect_even(counts);
}

}  // namespace
}  // namespace razorkv
