#include "eval/perplexity/sample_sums.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace razorkv {
namespace {

constexpr std::int64_t kFewSamples = 10;

}  // namespace

Estimate SampleSum::mean() const {
  if (count_ == 0) return {};
  const auto n = static_cast<double>(count_);
  const double mean = sum_ / n;
  const double variance = squares_ / n - mean * mean;
  return {mean, variance > 0.0 && count_ > kFewSamples ? std::sqrt(variance / (n - 1.0)) : 0.0};
}

double percentile(const std::vector<float>& sorted, double fraction) {
  if (sorted.empty()) return 0.0;
  const double place = std::clamp(fraction, 0.0, 1.0) * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  const double part = place - static_cast<double>(below);
  return (1.0 - part) * static_cast<double>(sorted[below]) + part * static_cast<double>(sorted[above]);
}

Estimate exponential(const Estimate& mean) {
  const double value = std::exp(mean.value);
  return {value, value * mean.error};
}

}  // namespace razorkv
