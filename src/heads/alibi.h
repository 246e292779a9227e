// Windows of ALiBi heads: how far a head with slope l can look before its attention falls below eps
// (2407.15891, Theorem 1; algorithm section 3.3). Pure functions; no head search is needed for these models.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace razorkv {

/// Slopes of `heads` heads: a geometric series 2^(-max_bias * (h + 1) / n) where heads = n is a power of two; otherwise
/// that of the next lower power of two, then every second one of the next higher.
std::vector<double> alibi_slopes(std::int64_t heads, double max_bias = 8.0);

/// Weights of one head, each [width, embedding]: row i gives element i of q (or k).
struct HeadWeights {
  std::span<const float> q;
  std::span<const float> k;
  std::int64_t width = 0;
  std::int64_t embedding = 0;
};

/// Largest singular value of W_Q W_K^T, [embedding, embedding].
double qk_spectral_norm(const HeadWeights& head);
/// Largest absolute element of W_Q W_K^T.
double qk_max_abs(const HeadWeights& head);

enum class AlibiBound {
  paper,    ///< B^2 = |gamma|^2 + |beta|^2 of the LayerNorm
  rigorous  ///< B = sqrt(D) * max|gamma| + |beta|: holds for every input
};
/// B^2, the bound of the squared norm of normalised inputs. `beta` may be empty (no bias).
double alibi_input_bound(AlibiBound bound, std::span<const float> gamma, std::span<const float> beta);

/// L_h in tokens, not rounded: (2 * spectral_norm * b_squared * scale - ln eps) / slope.
double alibi_window(double spectral_norm, double b_squared, double scale, double epsilon, double slope);
/// Rows of a window that reaches every distance below `tokens`: ceil, at least 1.
std::int64_t alibi_window_rows(double tokens);

/// The vendor's formula, one window per head for all layers:
/// int((ln theta + max over layers of sqrt(max|W_Q W_K^T|) + alpha) / slope).
/// `max_abs_per_layer` holds qk_max_abs() of the head in every layer, at least one.
std::int64_t alibi_vendor_window(std::span<const double> max_abs_per_layer, double slope, double theta = 1e-5,
                                 double alpha = 100.0);

}  // namespace razorkv
