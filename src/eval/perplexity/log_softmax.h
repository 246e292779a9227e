// Next-token distributions from logits.
#pragma once

#include <cstdint>
#include <span>

#include "razorkv/types.h"

namespace razorkv {

/// A distribution over the vocabulary: log p(i) = values[i] - offset, natural logarithms.
struct LogProbabilities {
  std::span<const float> values;
  double offset = 0.0;
  std::int64_t top = 0;  ///< the most likely token, the lowest id among equals

  double operator[](Token token) const { return static_cast<double>(values[static_cast<std::size_t>(token)]) - offset; }
};

/// Normalises logits [vocabulary], which it refers to. The sum is kept in double precision. Throws Error for logits
/// that hold NaN or plus infinity, or only minus infinity.
LogProbabilities log_softmax(std::span<const float> logits);

}  // namespace razorkv
