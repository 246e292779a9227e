// Angles at long positions against an independent computation in extended precision.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "model/rotation.h"

namespace razorkv {
namespace {

constexpr int kDims = 64;

/// Largest error of the cosines and sines at `position`, against long double powers and angles.
double error_at(std::int32_t position, float base) {
  RopeConfig rope;
  rope.dims = kDims;
  rope.base = base;
  std::vector<float> found(kDims);
  Rotation(rope, false, {}).table({&position, 1}, found);
  double worst = 0.0;
  for (int i = 0; i < kDims / 2; ++i) {
    const long double angle = position * std::exp(-2.0L * i / kDims * std::log(static_cast<long double>(base)));
    const auto pair = static_cast<std::size_t>(i);
    const auto difference = [](float a, long double b) { return static_cast<double>(std::abs(a - b)); };
    const double cosine = difference(found[pair], std::cos(angle));
    const double sine = difference(found[pair + kDims / 2], std::sin(angle));
    EXPECT_FALSE(std::isnan(cosine) || std::isnan(sine));
    worst = std::max({worst, cosine, sine});
  }
  return worst;
}

// Half a last place of a float32 below 1 is 3e-8; the double angle adds 131071 * 2^-53 = 1.5e-11. With float32 angles
// the error is 2.2e-3 at 131071, and angles built in f16 or bf16 would be off by whole turns.
TEST(RopePrecision, AnglesAreRightToTheLastPlaceAtAnyPosition) {
  for (const float base : {10000.0F, 1e6F}) {
    for (const std::int32_t position : {0, 1, 255, 2049, 16001, 131071, 16777217, 2147483647}) {
      EXPECT_LE(error_at(position, base), position > 131071 ? 5e-7 : 3.1e-8)
          << "position " << position << " base " << base;
    }
  }
}

}  // namespace
}  // namespace razorkv
