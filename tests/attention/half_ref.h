// Half precision by arithmetic, for tests: shares nothing with the library's conversions.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

namespace razorkv::test {

/// Nearest half, ties to even, saturating at 65504.
inline std::uint16_t to_half(double value) {
  const auto sign = static_cast<std::uint16_t>(std::signbit(value) ? 0x8000U : 0U);
  const double magnitude = std::fmin(std::fabs(value), 65504.0);
  if (magnitude == 0.0) return sign;
  int exponent = 0;
  std::frexp(magnitude, &exponent);
  exponent = exponent - 1 < -14 ? -14 : exponent - 1;
  // Mantissa in units of 2^(exponent - 10); 1024 and above carries into the exponent field by itself.
  const double units = std::nearbyint(std::ldexp(magnitude, 10 - exponent));
  return static_cast<std::uint16_t>(sign +
                                    static_cast<std::uint16_t>((exponent + 14) * 1024 + static_cast<int>(units)));
}

inline double from_half(std::uint16_t bits) {
  const int exponent = (bits >> 10) & 31;
  const int mantissa = bits & 1023;
  const double sign = (bits & 0x8000) != 0 ? -1.0 : 1.0;
  if (exponent == 31) {
    return mantissa != 0 ? std::numeric_limits<double>::quiet_NaN() : sign * std::numeric_limits<double>::infinity();
  }
  return sign * (exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25));
}

}  // namespace razorkv::test
