// How far one engine's next-token distributions are from another's: llama.cpp's --kl-divergence statistics.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "eval/perplexity/log_softmax.h"
#include "eval/perplexity/sample_sums.h"

namespace razorkv {

/// Of one scored token.
struct TokenDivergence {
  double nll = 0.0;
  double nll_base = 0.0;
  double kld = 0.0;       ///< sum over i of p_base(i) (log p_base(i) - log p(i)) where log p_base(i) > -16
  double p_change = 0.0;  ///< p(token) - p_base(token)
  bool same_top = false;
};

TokenDivergence compare_distributions(const LogProbabilities& base, const LogProbabilities& found, Token token);

/// Fractions at which the distributions of KLD and change of probability are given, the maximum first.
inline constexpr std::array<double, 11> kPercentiles = {1.0, 0.999, 0.99, 0.95, 0.9, 0.5, 0.1, 0.05, 0.01, 0.001, 0.0};

struct DivergenceSummary {
  std::int64_t count = 0;
  Estimate perplexity;
  Estimate perplexity_base;
  double correlation = 0.0;  ///< of the two ln PPL, as their errors vary together; 1 where both never vary
  Estimate log_ratio;        ///< ln(PPL / PPL of the base)
  Estimate ratio;
  Estimate difference;
  Estimate kld;
  std::array<double, kPercentiles.size()> kld_percentiles{};
  Estimate p_change;
  Estimate p_change_rms;
  std::array<double, kPercentiles.size()> p_change_percentiles{};
  Estimate same_top;  ///< share of tokens
};

class DivergenceSums {
 public:
  void add(const TokenDivergence& token);
  std::int64_t count() const { return nll_.count(); }
  DivergenceSummary summary() const;

 private:
  SampleSum nll_;
  SampleSum nll_base_;
  SampleSum p_change_;
  SampleSum p_change_squared_;
  SampleSum kld_;
  double nll_product_ = 0.0;
  std::int64_t same_top_ = 0;
  std::vector<float> kld_values_;
  std::vector<float> p_change_values_;
};

}  // namespace razorkv
