// How the next token is chosen from logits.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "razorkv/model.h"
#include "razorkv/types.h"

namespace razorkv {

/// Added to a token's logit; minus infinity forbids the token.
struct LogitBias {
  Token token = 0;
  float bias = 0.0F;
};

/// Applied in this order: grammar, logit bias, penalties, top-k, top-p, min-p, temperature, draw.
struct SamplingParams {
  float temperature = 0.8F;          ///< >= 0; 0 = always the most likely token, the lowest id among equals
  std::int32_t top_k = 40;           ///< >= 0; 0 = all tokens
  float top_p = 0.95F;               ///< 0 to 1; 1 = all tokens
  float min_p = 0.05F;               ///< 0 to 1; 0 = all tokens
  float repeat_penalty = 1.0F;       ///< > 0; 1 = none
  float frequency_penalty = 0.0F;    ///< 0 = none
  float presence_penalty = 0.0F;     ///< 0 = none
  std::int32_t penalty_last_n = 64;  ///< tokens that penalties look back on; 0 = none, -1 = kMaxPenaltyTokens
  std::string grammar;               ///< GBNF; empty = none
  std::string grammar_root = "root";
  std::vector<LogitBias> logit_bias;
  std::optional<std::uint32_t> seed;  ///< none: a new one each time

  static constexpr std::int32_t kMaxPenaltyTokens = 1 << 20;
};

/// Chooses tokens for one sequence; not thread-safe.
class TokenSampler {
 public:
  /// Throws InvalidArgument for a parameter outside its range and a grammar that cannot be read.
  TokenSampler(const Model& model, const SamplingParams& params);
  ~TokenSampler();
  TokenSampler(TokenSampler&&) noexcept;
  TokenSampler& operator=(TokenSampler&&) noexcept;

  /// Chooses from logits [vocabulary] and remembers the choice for penalties and grammar. Throws InvalidArgument for a
  /// wrong count, Error for logits that are not numbers or when the grammar allows no token.
  Token sample(std::span<const float> logits);
  /// Makes penalties see the prompt.
  void accept_prompt(std::span<const Token> tokens);

  struct Impl;

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace razorkv
