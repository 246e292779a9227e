// How far two sequences of next-token distributions are apart.
#pragma once

#include <cstdint>
#include <vector>

namespace razorkv::test {

struct Divergence {
  double mean_kld = 0.0;        ///< mean over the rows of sum p ln(p / q), nats; p = softmax(expected)
  double same_top_share = 0.0;  ///< share of rows with the same most likely token
  double gap_shift = 0.0;       ///< root mean square of how much the gap between expected's two best logits moves
};

/// Both [rows, row]. Not a number anywhere, or unequal sizes, give an infinite divergence and gap and a share of 0.
Divergence divergence(const std::vector<float>& found, const std::vector<float>& expected, std::int64_t row);

}  // namespace razorkv::test
