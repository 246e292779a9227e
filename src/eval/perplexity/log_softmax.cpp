#include "eval/perplexity/log_softmax.h"

#include <algorithm>
#include <cmath>

#include "razorkv/error.h"

namespace razorkv {

LogProbabilities log_softmax(std::span<const float> logits) {
  const auto top = std::max_element(logits.begin(), logits.end());
  const float largest = top == logits.end() ? NAN : *top;
  double sum = 0.0;
  for (const float logit : logits) sum += static_cast<double>(std::exp(logit - largest));
  if (!std::isfinite(sum) || sum <= 0.0)
    throw Error("the model gave logits that are not numbers; is the file damaged?");
  return {logits, static_cast<double>(largest) + std::log(sum), top - logits.begin()};
}

}  // namespace razorkv
