// Mean, deviation and median of a few measurements; distance of two vectors.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

namespace razorkv::bench {

/// `values` is not empty.
inline double mean(const std::vector<double>& values) {
  double sum = 0.0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

/// Of the sample; 0 for one value.
inline double deviation(const std::vector<double>& values) {
  if (values.size() < 2) return 0.0;
  const double middle = mean(values);
  double sum = 0.0;
  for (const double value : values) sum += (value - middle) * (value - middle);
  return std::sqrt(sum / static_cast<double>(values.size() - 1));
}

inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : 0.5 * (values[half - 1] + values[half]);
}

/// |found - expected| / |expected|, both of one length.
inline double distance(std::span<const float> found, std::span<const float> expected) {
  double difference = 0.0;
  double size = 0.0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    difference += std::pow(double{found[i]} - double{expected[i]}, 2);
    size += std::pow(double{expected[i]}, 2);
  }
  return std::sqrt(difference / size);
}

}  // namespace razorkv::bench
