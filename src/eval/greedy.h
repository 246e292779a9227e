// The choice of greedy decoding.
#pragma once

#include <algorithm>
#include <span>

#include "razorkv/types.h"

namespace razorkv {

/// The largest logit, the lowest id among equals.
inline Token most_likely_token(std::span<const float> logits) {
  return static_cast<Token>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

}  // namespace razorkv
