#include "support/divergence.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

namespace razorkv::test {
namespace {

/// Logarithm of the sum of the exponentials.
double log_sum(std::span<const float> logits) {
  const auto largest = static_cast<double>(*std::max_element(logits.begin(), logits.end()));
  double sum = 0.0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - largest);
  return largest + std::log(sum);
}

double kld(std::span<const float> found, std::span<const float> expected) {
  const double found_sum = log_sum(found);
  const double expected_sum = log_sum(expected);
  double total = 0.0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double log_p = static_cast<double>(expected[i]) - expected_sum;
    const double log_q = static_cast<double>(found[i]) - found_sum;
    total += std::exp(log_p) * (log_p - log_q);
  }
  return total;
}

double gap(std::span<const float> logits, std::ptrdiff_t best, std::ptrdiff_t second) {
  return static_cast<double>(logits[static_cast<std::size_t>(best)]) -
         static_cast<double>(logits[static_cast<std::size_t>(second)]);
}

/// The most likely token but for `best`.
std::ptrdiff_t second(std::span<const float> logits, std::ptrdiff_t best) {
  const auto begin = logits.begin();
  const auto before = std::max_element(begin, begin + best);
  const auto after = std::max_element(begin + best + 1, logits.end());
  if (best == 0) return after - begin;
  return (after == logits.end() || *before >= *after ? before : after) - begin;
}

}  // namespace

Divergence divergence(const std::vector<float>& found, const std::vector<float>& expected, std::int64_t row) {
  const auto width = static_cast<std::size_t>(row);
  const bool finite = std::all_of(found.begin(), found.end(), [](float x) { return std::isfinite(x); });
  if (found.size() != expected.size() || found.empty() || !finite) {
    return {std::numeric_limits<double>::infinity(), 0.0, std::numeric_limits<double>::infinity()};
  }
  Divergence sum;
  const std::size_t rows = found.size() / width;
  for (std::size_t r = 0; r < rows; ++r) {
    const std::span a = std::span(found).subspan(r * width, width);
    const std::span b = std::span(expected).subspan(r * width, width);
    sum.mean_kld += kld(a, b);
    const auto top_a = std::max_element(a.begin(), a.end()) - a.begin();
    const auto top_b = std::max_element(b.begin(), b.end()) - b.begin();
    sum.same_top_share += top_a == top_b ? 1.0 : 0.0;
    const double shift = gap(a, top_b, second(b, top_b)) - gap(b, top_b, second(b, top_b));
    sum.gap_shift += shift * shift;
  }
  sum.mean_kld /= static_cast<double>(rows);
  sum.same_top_share /= static_cast<double>(rows);
  sum.gap_shift = std::sqrt(sum.gap_shift / static_cast<double>(rows));
  return sum;
}

}  // namespace razorkv::test
