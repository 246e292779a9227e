#include "heads/alibi.h"

#include <algorithm>
#include <cmath>

namespace razorkv {
namespace {

double norm_squared(std::span<const float> x) {
  double sum = 0.0;
  for (const float value : x) sum += static_cast<double>(value) * static_cast<double>(value);
  return sum;
}

/// W W^T, [width, width].
std::vector<double> gram(std::span<const float> w, std::int64_t width, std::int64_t embedding) {
  const auto d = static_cast<std::size_t>(width);
  const auto n = static_cast<std::size_t>(embedding);
  std::vector<double> g(d * d);
  for (std::size_t i = 0; i < d; ++i) {
    for (std::size_t j = 0; j < d; ++j) {
      double sum = 0.0;
      for (std::size_t e = 0; e < n; ++e) sum += static_cast<double>(w[i * n + e]) * static_cast<double>(w[j * n + e]);
      g[i * d + j] = sum;
    }
  }
  return g;
}

std::vector<double> multiply(const std::vector<double>& matrix, const std::vector<double>& x) {
  std::vector<double> y(x.size(), 0.0);
  for (std::size_t i = 0; i < x.size(); ++i) {
    for (std::size_t j = 0; j < x.size(); ++j) y[i] += matrix[i * x.size() + j] * x[j];
  }
  return y;
}

double length(const std::vector<double>& x) {
  double sum = 0.0;
  for (const double value : x) sum += value * value;
  return std::sqrt(sum);
}

std::vector<double> geometric_slopes(std::int64_t heads, double max_bias) {
  std::vector<double> slopes;
  for (std::int64_t h = 1; h <= heads; ++h) {
    slopes.push_back(std::exp2(-max_bias * static_cast<double>(h) / static_cast<double>(heads)));
  }
  return slopes;
}

}  // namespace

std::vector<double> alibi_slopes(std::int64_t heads, double max_bias) {
  std::int64_t power = 1;
  while (power * 2 <= heads) power *= 2;
  std::vector<double> slopes = geometric_slopes(power, max_bias);
  const std::vector<double> finer = geometric_slopes(2 * power, max_bias);
  for (std::size_t i = 0; static_cast<std::int64_t>(slopes.size()) < heads; i += 2) slopes.push_back(finer[i]);
  return slopes;
}

double qk_spectral_norm(const HeadWeights& head) {
  // With q = Wq x and k = Wk y the matrix is Wq^T Wk; its squared singular values are the eigenvalues of Gq Gk, where
  // G = W W^T. Power iteration in double; the start has a part along every axis.
  const std::vector<double> gq = gram(head.q, head.width, head.embedding);
  const std::vector<double> gk = gram(head.k, head.width, head.embedding);
  std::vector<double> x(static_cast<std::size_t>(head.width));
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = 1.0 + 0.37 * static_cast<double>(i % 7);
  double eigenvalue = 0.0;
  for (int step = 0; step < 10000; ++step) {
    const double size = length(x);
    if (size == 0.0) return 0.0;
    for (double& value : x) value /= size;
    x = multiply(gq, multiply(gk, x));
    const double next = length(x);
    if (std::abs(next - eigenvalue) <= 1e-13 * next) return std::sqrt(next);
    eigenvalue = next;
  }
  return std::sqrt(eigenvalue);
}

double qk_max_abs(const HeadWeights& head) {
  const auto d = static_cast<std::size_t>(head.width);
  const auto n = static_cast<std::size_t>(head.embedding);
  double largest = 0.0;
  std::vector<double> row(n);
  for (std::size_t a = 0; a < n; ++a) {
    std::fill(row.begin(), row.end(), 0.0);
    for (std::size_t i = 0; i < d; ++i) {
      const auto q = static_cast<double>(head.q[i * n + a]);
      for (std::size_t b = 0; b < n; ++b) row[b] += q * static_cast<double>(head.k[i * n + b]);
    }
    for (const double value : row) largest = std::max(largest, std::abs(value));
  }
  return largest;
}

double alibi_input_bound(AlibiBound bound, std::span<const float> gamma, std::span<const float> beta) {
  if (bound == AlibiBound::paper) return norm_squared(gamma) + norm_squared(beta);
  double largest = 0.0;
  for (const float value : gamma) largest = std::max(largest, std::abs(static_cast<double>(value)));
  const double b = std::sqrt(static_cast<double>(gamma.size())) * largest + std::sqrt(norm_squared(beta));
  return b * b;
}

double alibi_window(double spectral_norm, double b_squared, double scale, double epsilon, double slope) {
  return (2.0 * spectral_norm * b_squared * scale - std::log(epsilon)) / slope;
}

std::int64_t alibi_window_rows(double tokens) {
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(std::ceil(tokens)));
}

std::int64_t alibi_vendor_window(std::span<const double> max_abs_per_layer, double slope, double theta, double alpha) {
  double largest = 0.0;
  for (const double max_abs : max_abs_per_layer) largest = std::max(largest, std::sqrt(max_abs));
  return static_cast<std::int64_t>((std::log(theta) + largest + alpha) / slope);
}

}  // namespace razorkv
