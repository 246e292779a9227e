// One answer while it is being generated.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cache/kv_sequence.h"
#include "engine/sampler.h"
#include "engine/text_stream.h"
#include "model/vocabulary.h"
#include "server/generation.h"

namespace razorkv::server {

struct ChoiceLimits {
  std::int64_t max_tokens = 0;  ///< 0 = none
  std::int64_t context = 0;
};

class Choice {
 public:
  Choice(std::size_t index, KvSequence sequence, Sampler sampler, const std::vector<std::string>& stops);

  /// Chooses the next token from logits [vocabulary] and says what may be shown now. Throws as Sampler::sample().
  GenerationDelta take(std::span<const float> logits, const GenerationRequest& request, const Vocabulary& vocabulary,
                       const ChoiceLimits& limits);

  bool finished() const { return finished_; }
  bool stopped_by_text() const { return text_.stopped(); }
  KvSequence& sequence() { return sequence_; }
  const KvSequence& sequence() const { return sequence_; }
  /// All tokens chosen. The last is not in the sequence until it has been fed.
  const std::vector<Token>& tokens() const { return tokens_; }
  const Token& pending() const { return tokens_.back(); }

 private:
  struct Waiting {
    ScoredToken token;
    std::size_t end = 0;  // bytes of text up to its own last one
  };
  void release(GenerationDelta& delta, std::size_t shown);

  std::size_t index_;
  KvSequence sequence_;
  Sampler sampler_;
  TextStream text_;
  std::vector<Token> tokens_;
  std::deque<Waiting> waiting_;
  std::size_t bytes_ = 0;
  bool finished_ = false;
};

/// The log-probability of `token` and of the `top` most likely ones under logits [vocabulary].
ScoredToken score_token(std::span<const float> logits, Token token, std::size_t top);

}  // namespace razorkv::server
