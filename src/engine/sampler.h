// Choosing the next token.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "model/vocabulary.h"
#include "razorkv/sampling.h"

struct llama_sampler;

namespace razorkv {

/// Belongs to one sequence; not thread-safe.
class Sampler {
 public:
  /// Throws InvalidArgument for a parameter outside its range, a biased token outside the vocabulary, and a grammar
  /// that cannot be read.
  Sampler(std::shared_ptr<const Vocabulary> vocabulary, const SamplingParams& params);
  ~Sampler();
  Sampler(Sampler&&) noexcept;
  Sampler& operator=(Sampler&&) noexcept;

  /// Chooses a token from logits [vocabulary], and remembers it as accept() does. Throws InvalidArgument for a wrong
  /// count, Error for logits that hold NaN or plus infinity or only minus infinity, and Error when the grammar allows
  /// none of the tokens. After a throw the sampler is as it was.
  Token sample(std::span<const float> logits);

  /// Remembers a token of the prompt: penalties see it, the grammar does not.
  void accept_prompt(Token token);
  /// Remembers a token that follows the prompt without sample(). Throws InvalidArgument when the grammar forbids it.
  void accept(Token token);

  /// A sampler in the same state.
  Sampler clone() const;
  /// Back to the state after construction; the seed stays.
  void reset();
  std::uint32_t seed() const;  ///< the one in use

 private:
  struct Free {
    void operator()(llama_sampler* sampler) const;
  };
  using Handle = std::unique_ptr<llama_sampler, Free>;
  Sampler() = default;
  void check(Token token) const;
  bool grammar_allows(Token token) const;

  std::shared_ptr<const Vocabulary> vocabulary_;
  SamplingParams params_;
  Handle grammar_;  // null: none
  Handle adjust_;   // bias and penalties; null: neither
  Handle choose_;   // top-k to draw; null: greedy
};

}  // namespace razorkv
