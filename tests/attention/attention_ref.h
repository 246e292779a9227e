// Attention in double precision, one row after the other. Shares no code with the library.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace razorkv::test {

struct RefRow {
  std::vector<double> k, v;
  double count = 1.0;  ///< the row stands for this many rows
};

struct RefOutput {
  std::vector<double> out;
  double log_sum = -std::numeric_limits<double>::infinity();
};

inline RefOutput attend_ref(const std::vector<double>& q, const std::vector<RefRow>& rows, double scale,
                            double soft_cap) {
  RefOutput result;
  result.out.assign(q.size(), 0.0);
  std::vector<double> logits;
  for (const RefRow& row : rows) {
    double logit = 0.0;
    for (std::size_t i = 0; i < q.size(); ++i) logit += q[i] * row.k[i];
    logit *= scale;
    if (soft_cap != 0.0) logit = soft_cap * std::tanh(logit / soft_cap);
    logits.push_back(logit);
  }
  if (rows.empty()) return result;
  const double most = *std::max_element(logits.begin(), logits.end());
  double total = 0.0;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const double weight = rows[r].count * std::exp(logits[r] - most);
    total += weight;
    for (std::size_t i = 0; i < q.size(); ++i) result.out[i] += weight * rows[r].v[i];
  }
  for (double& x : result.out) x /= total;
  result.log_sum = most + std::log(total);
  return result;
}

}  // namespace razorkv::test
