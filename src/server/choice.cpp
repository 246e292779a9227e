#include "server/choice.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

namespace razorkv::server {

ScoredToken score_token(std::span<const float> logits, Token token, std::size_t top) {
  const double largest = *std::max_element(logits.begin(), logits.end());
  double sum = 0.0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - largest);
  const double log_sum = largest + std::log(sum);
  const auto scored = [&](Token id) {
    return TokenScore{id, static_cast<float>(logits[static_cast<std::size_t>(id)] - log_sum)};
  };
  ScoredToken out{scored(token), {}};
  top = std::min(top, logits.size());
  if (top == 0) return out;
  std::vector<Token> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  const auto likelier = [&](Token a, Token b) {
    const float left = logits[static_cast<std::size_t>(a)];
    const float right = logits[static_cast<std::size_t>(b)];
    return left > right || (left == right && a < b);
  };
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(top), order.end(), likelier);
  for (std::size_t i = 0; i < top; ++i) out.top.push_back(scored(order[i]));
  return out;
}

Choice::Choice(std::size_t index, KvSequence sequence, Sampler sampler, const std::vector<std::string>& stops)
    : index_(index), sequence_(std::move(sequence)), sampler_(std::move(sampler)), text_(stops) {}

void Choice::release(GenerationDelta& delta, std::size_t shown) {
  while (!waiting_.empty() && waiting_.front().end <= shown) {
    delta.tokens.push_back(std::move(waiting_.front().token));
    waiting_.pop_front();
  }
}

GenerationDelta Choice::take(std::span<const float> logits, const GenerationRequest& request,
                             const Vocabulary& vocabulary, const ChoiceLimits& limits) {
  GenerationDelta delta;
  delta.choice = index_;
  const auto finish = [&](FinishReason reason) {
    delta.finish = reason;
    delta.text += text_.finish();
    if (!text_.stopped()) release(delta, bytes_);
    finished_ = true;
  };
  const Token token = sampler_.sample(logits);
  if (vocabulary.is_end_of_generation(token)) {
    finish(FinishReason::stop);
    return delta;
  }
  tokens_.push_back(token);
  const std::string piece = vocabulary.piece(token);
  const std::size_t held_before = text_.held_bytes();
  const std::size_t shown_before = bytes_ - held_before;
  bytes_ += piece.size();
  if (request.logprobs) waiting_.push_back({score_token(logits, token, request.top_logprobs), bytes_});
  delta.text = text_.push(piece);
  // Before a stop string the text has as many bytes as are shown; elsewhere all that is not held back.
  release(delta, text_.stopped() ? shown_before + delta.text.size() : bytes_ - text_.held_bytes());
  const auto count = static_cast<std::int64_t>(tokens_.size());
  if (text_.stopped()) {
    finish(FinishReason::stop);
  } else if ((limits.max_tokens > 0 && count >= limits.max_tokens) || sequence_.tokens() >= limits.context) {
    finish(FinishReason::length);
  }
  return delta;
}

}  // namespace razorkv::server
