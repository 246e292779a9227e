// Sums over scored tokens, and what follows from them.
#pragma once

#include <cstdint>
#include <vector>

namespace razorkv {

struct Estimate {
  double value = 0.0;
  double error = 0.0;  ///< standard error
};

/// Sum and sum of squares of a quantity.
class SampleSum {
 public:
  void add(double x) {
    sum_ += x;
    squares_ += x * x;
    ++count_;
  }
  std::int64_t count() const { return count_; }
  /// Mean and sqrt((mean of squares - mean²) / (count - 1)); an error of 0 for ten samples and fewer.
  Estimate mean() const;

 private:
  double sum_ = 0.0;
  double squares_ = 0.0;
  std::int64_t count_ = 0;
};

/// Linear at fraction * (n - 1) of the sorted values; 0 where there are none.
double percentile(const std::vector<float>& sorted, double fraction);

/// exp(mean), with the error carried over to first order.
Estimate exponential(const Estimate& mean);

}  // namespace razorkv
