#include "eval/perplexity/divergence.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace razorkv {
namespace {

constexpr double kLeastLogProbability = -16.0;

std::array<double, kPercentiles.size()> percentiles(std::vector<float> values) {
  std::sort(values.begin(), values.end());
  std::array<double, kPercentiles.size()> out{};
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = percentile(values, kPercentiles[i]);
  return out;
}

double error_of_difference(double a, double b, double covariance) {
  return std::sqrt(std::max(0.0, a * a + b * b - 2.0 * covariance));
}

}  // namespace

TokenDivergence compare_distributions(const LogProbabilities& base, const LogProbabilities& found, Token token) {
  TokenDivergence out;
  const auto limit = static_cast<float>(kLeastLogProbability + base.offset);
  const double shift = found.offset - base.offset;
  for (std::size_t i = 0; i < base.values.size(); ++i) {
    if (base.values[i] <= limit) continue;
    const double log_p = static_cast<double>(base.values[i]) - base.offset;
    out.kld += std::exp(log_p) * (static_cast<double>(base.values[i]) - static_cast<double>(found.values[i]) + shift);
  }
  out.nll = -found[token];
  out.nll_base = -base[token];
  out.p_change = std::exp(-out.nll) - std::exp(-out.nll_base);
  out.same_top = base.top == found.top;
  return out;
}

void DivergenceSums::add(const TokenDivergence& token) {
  nll_.add(token.nll);
  nll_base_.add(token.nll_base);
  nll_product_ += token.nll * token.nll_base;
  kld_.add(token.kld);
  p_change_.add(token.p_change);
  p_change_squared_.add(token.p_change * token.p_change);
  if (token.same_top) ++same_top_;
  kld_values_.push_back(static_cast<float>(token.kld));
  p_change_values_.push_back(static_cast<float>(token.p_change));
}

DivergenceSummary DivergenceSums::summary() const {
  DivergenceSummary out;
  out.count = count();
  if (out.count == 0) return out;
  const auto n = static_cast<double>(out.count);
  const Estimate nll = nll_.mean();
  const Estimate base = nll_base_.mean();
  out.perplexity = exponential(nll);
  out.perplexity_base = exponential(base);
  const double covariance = out.count > 10 ? (nll_product_ / n - nll.value * base.value) / (n - 1.0) : 0.0;
  const double scale = nll.error * base.error;
  out.correlation = scale > 0.0 ? covariance / scale : 1.0;
  out.log_ratio = {nll.value - base.value, error_of_difference(nll.error, base.error, covariance)};
  out.ratio = exponential(out.log_ratio);
  out.difference = {out.perplexity.value - out.perplexity_base.value,
                    error_of_difference(out.perplexity.error, out.perplexity_base.error,
                                        out.perplexity.value * out.perplexity_base.value * covariance)};
  out.kld = kld_.mean();
  out.kld_percentiles = percentiles(kld_values_);
  out.p_change = p_change_.mean();
  out.p_change_percentiles = percentiles(p_change_values_);
  const Estimate square = p_change_squared_.mean();
  const double rms = std::sqrt(square.value);
  out.p_change_rms = {rms, rms > 0.0 ? 0.5 / rms * square.error : 0.0};
  const double same = static_cast<double>(same_top_) / n;
  out.same_top = {same, n > 1.0 ? std::sqrt(same * (1.0 - same) / (n - 1.0)) : 0.0};
  return out;
}

}  // namespace razorkv
