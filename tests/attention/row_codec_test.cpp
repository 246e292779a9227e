#include "attention/row_codec.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "every_target.h"
#include "half_ref.h"

namespace razorkv::test {
namespace {

class RowCodec : public EveryTarget {};
INSTANTIATE_TEST_SUITE_P(Targets, RowCodec, all_targets(), target_name);

TEST_P(RowCodec, EveryHalfComesBack) {
  std::vector<std::uint16_t> half;
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    if ((bits & 0x7C00) != 0x7C00) half.push_back(static_cast<std::uint16_t>(bits));
  }
  const auto width = static_cast<std::int64_t>(half.size());
  std::vector<float> wide(half.size());
  load_row(RowType::f16, reinterpret_cast<const std::byte*>(half.data()), wide.data(), width);
  for (std::size_t i = 0; i < half.size(); ++i) ASSERT_EQ(wide[i], from_half(half[i])) << half[i];
  std::vector<std::uint16_t> back(half.size());
  store_row(RowType::f16, wide.data(), reinterpret_cast<std::byte*>(back.data()), width);
  EXPECT_EQ(back, half);
}

TEST_P(RowCodec, RoundsToNearestEvenAndSaturates) {
  std::vector<float> values{1e9F,
                            -1e9F,
                            65504.0F,
                            65519.0F,
                            65520.0F,
                            -65536.0F,
                            0.0F,
                            -0.0F,
                            1e-8F,
                            2.9e-8F,
                            3.1e-8F,
                            -4e-8F,
                            6.1e-5F,
                            1.00048828125F,
                            1.00146484375F,
                            std::ldexp(1.0F, -25),
                            std::ldexp(3.0F, -25)};
  std::mt19937 random(5);
  std::uniform_int_distribution<std::uint32_t> bits;
  while (values.size() < 20000) {
    const float x = std::bit_cast<float>(bits(random));
    if (std::isfinite(x)) values.push_back(x);
  }
  std::normal_distribution<float> normal;
  while (values.size() < 40003) values.push_back(normal(random));
  std::vector<std::uint16_t> half(values.size());
  store_row(RowType::f16, values.data(), reinterpret_cast<std::byte*>(half.data()), std::ssize(values));
  for (std::size_t i = 0; i < values.size(); ++i) ASSERT_EQ(half[i], to_half(values[i])) << values[i];
}

TEST_P(RowCodec, SumsAreExactAndStayInside) {
  for (const std::int64_t width : {1, 2, 3, 7, 8, 9, 15, 16, 17, 64, 100}) {
    for (const RowType type : {RowType::f32, RowType::f16}) {
      std::vector<float> row(static_cast<std::size_t>(width));
      for (std::size_t i = 0; i < row.size(); ++i) row[i] = 0.5F - static_cast<float>(i);
      std::vector<std::byte> stored(row_bytes(type, width) + 8, std::byte{0x5A});
      store_row(type, row.data(), stored.data(), width);
      for (std::size_t i = row_bytes(type, width); i < stored.size(); ++i) EXPECT_EQ(stored[i], std::byte{0x5A});
      std::vector<double> sum(row.size() + 1, 1e-9);
      add_row(type, stored.data(), sum.data(), width);
      for (std::size_t i = 0; i < row.size(); ++i) EXPECT_EQ(sum[i], 1e-9 + static_cast<double>(row[i]));
      EXPECT_EQ(sum.back(), 1e-9);
      std::vector<float> back(row.size() + 1, 7.0F);
      load_row(type, stored.data(), back.data(), width);
      for (std::size_t i = 0; i < row.size(); ++i) EXPECT_EQ(back[i], row[i]);
      EXPECT_EQ(back.back(), 7.0F);
    }
  }
}

// Row 31: offsets past 2^31 and 2^32, without allocating.
TEST(RowBytes, CountsIn64Bits) {
  EXPECT_EQ(row_bytes(RowType::f32, std::int64_t{1} << 30), std::size_t{1} << 32);
  EXPECT_EQ(row_bytes(RowType::f16, (std::int64_t{1} << 31) + 1), (std::size_t{1} << 32) + 2);
}

}  // namespace
}  // namespace razorkv::test
