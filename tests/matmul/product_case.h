// One product: seeded blocks and activations, the result in double precision from ggml's dequantised weights, and the
// bound of the difference.
#pragma once

#include <ggml.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "matmul/matmul.h"

namespace razorkv::test {

struct TypePair {
  BlockType ours;
  ggml_type ggml;
};

inline const std::vector<TypePair>& all_types() {
  static const std::vector<TypePair> types{{BlockType::q4_0, GGML_TYPE_Q4_0}, {BlockType::q4_1, GGML_TYPE_Q4_1},
                                           {BlockType::q5_0, GGML_TYPE_Q5_0}, {BlockType::q5_1, GGML_TYPE_Q5_1},
                                           {BlockType::q8_0, GGML_TYPE_Q8_0}, {BlockType::q4_k, GGML_TYPE_Q4_K},
                                           {BlockType::q5_k, GGML_TYPE_Q5_K}, {BlockType::q6_k, GGML_TYPE_Q6_K}};
  return types;
}

struct ProductCase {
  TypePair type;
  std::int64_t columns, rows, tokens;
  std::vector<std::byte> blocks;
  std::vector<float> weights;      // [rows, columns], by ggml
  std::vector<float> activations;  // [tokens, columns]

  ProductCase(TypePair the_type, std::int64_t k, std::int64_t m, std::int64_t n, unsigned seed)
      : type(the_type), columns(k), rows(m), tokens(n) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    weights.resize(static_cast<std::size_t>(k * m));
    // Rows of different size and mean, so that swapped rows and lost offsets show.
    for (std::size_t i = 0; i < weights.size(); ++i) {
      const auto row = static_cast<float>(i / static_cast<std::size_t>(k) % 7);
      weights[i] = 0.02F * (1.0F + row) * (normal(random) + 0.3F * row - 1.0F);
    }
    blocks.resize(static_cast<std::size_t>(m) * ggml_row_size(type.ggml, k));
    ggml_quantize_chunk(type.ggml, weights.data(), blocks.data(), 0, m, k, nullptr);
    dequantise();
    activations.resize(static_cast<std::size_t>(k * n));
    for (std::size_t i = 0; i < activations.size(); ++i) {
      activations[i] = normal(random) * (1.0F + static_cast<float>(i / 32 % 5));
    }
  }

  void dequantise() { ggml_get_type_traits(type.ggml)->to_float(blocks.data(), weights.data(), columns * rows); }

  const float* weight_row(std::int64_t r) const { return weights.data() + r * columns; }
  const float* activation_row(std::int64_t t) const { return activations.data() + t * columns; }

  std::vector<std::byte> rounded() const {
    std::vector<std::byte> out(static_cast<std::size_t>(tokens) * QuantisedRow(columns).bytes);
    quantise_rows(activations.data(), columns, 0, tokens, out.data());
    return out;
  }

  /// The product with room behind every token, which must stay as it is.
  std::vector<float> run() const {
    const std::vector<std::byte> x = rounded();
    const std::int64_t stride = rows + 3;
    std::vector<float> wide(static_cast<std::size_t>(tokens * stride), -77.0F);
    multiply({type.ours, columns, blocks.data(), x.data(), tokens, wide.data(), stride}, 0, rows);
    std::vector<float> out;
    for (std::int64_t t = 0; t < tokens; ++t) {
      out.insert(out.end(), wide.begin() + t * stride, wide.begin() + t * stride + rows);
      for (std::int64_t r = rows; r < stride; ++r) {
        EXPECT_EQ(wide[static_cast<std::size_t>(t * stride + r)], -77.0F) << "wrote behind token " << t;
      }
    }
    return out;
  }

  double exact(std::int64_t t, std::int64_t r) const {
    double sum = 0;
    for (std::int64_t k = 0; k < columns; ++k) {
      sum += static_cast<double>(weight_row(r)[k]) * static_cast<double>(activation_row(t)[k]);
    }
    return sum;
  }

  /// Rounding moves every activation of a block by at most half a step, step = largest / 127; float32 roundings of the
  /// step and of its inverse add 2^-22 of the activation. The integers are exact, so float32 rounds a block's term at
  /// most four times and the running sum once a block, each by 2^-24 of the sum of magnitudes. Value and offset of a
  /// weight count apart, since they cancel: |weight| + 2 |offset|, and no offset here is above three times the largest
  /// magnitude of its block (it is that of the lowest value, which each block comes near): 8 covers it.
  double bound(std::int64_t t, std::int64_t r) const {
    double rounding = 0;
    double magnitude = 0;
    for (std::int64_t b = 0; b < columns; b += 32) {
      double largest = 0;
      double most = 0;
      double sum = 0;
      double absolute = 0;
      for (std::int64_t k = b; k < b + 32; ++k) {
        const double w = std::fabs(static_cast<double>(weight_row(r)[k]));
        const double x = std::fabs(static_cast<double>(activation_row(t)[k]));
        largest = std::max(largest, x);
        most = std::max(most, w);
        sum += w;
        absolute += x;
      }
      rounding += 0.5 * largest / 127 * sum;
      magnitude += most * absolute;
    }
    const double blocks_per_row = static_cast<double>(columns) / 32;
    return rounding + (4 + blocks_per_row) * 8 * std::ldexp(magnitude, -24) + std::ldexp(magnitude, -22);
  }

  double variance(std::int64_t t, std::int64_t r) const {
    double sum = 0;
    for (std::int64_t b = 0; b < columns; b += 32) {
      double largest = 0;
      double squares = 0;
      for (std::int64_t k = b; k < b + 32; ++k) {
        largest = std::max(largest, std::fabs(static_cast<double>(activation_row(t)[k])));
        squares += static_cast<double>(weight_row(r)[k]) * static_cast<double>(weight_row(r)[k]);
      }
      sum += squares * (largest / 127) * (largest / 127) / 12;
    }
    return sum;
  }
};

/// Compares all elements; NaN fails. The bound is for the worst case, so the sum of squares is compared as well, with
/// the variance of independent roundings: step^2 / 12 for each activation, times the squares of its weights.
inline void expect_product(const ProductCase& c, const std::vector<float>& found, const std::string& what) {
  ASSERT_EQ(std::ssize(found), c.tokens * c.rows);
  double error = 0;
  double variance = 0;
  for (std::int64_t t = 0; t < c.tokens; ++t) {
    for (std::int64_t r = 0; r < c.rows; ++r) {
      const double wanted = c.exact(t, r);
      const auto value = static_cast<double>(found[static_cast<std::size_t>(t * c.rows + r)]);
      ASSERT_TRUE(std::fabs(value - wanted) <= c.bound(t, r))
          << what << ", token " << t << ", row " << r << ": expected " << wanted << ", found " << value << ", bound "
          << c.bound(t, r);
      error += (value - wanted) * (value - wanted);
      variance += c.variance(t, r);
    }
  }
  // Rows share the roundings of a token: 4 standard deviations for one token, twice the variance for many.
  EXPECT_LE(error, (2.0 + 14.0 / static_cast<double>(c.tokens)) * variance) << what;
}

}  // namespace razorkv::test
