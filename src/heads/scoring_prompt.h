// The prompt of the induction and echo scores: a block of random ids, repeated (algorithm section 3.1).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace razorkv {

struct ScoringPromptSettings {
  std::int64_t block = 2500;  ///< K, ids per block
  std::int64_t repeats = 4;   ///< copies of the block, at least 2
  std::uint64_t seed = 1;
  std::int64_t id_low = 0;    ///< ids are drawn from [id_low, id_high)
  std::int64_t id_high = -1;  ///< -1 = size of the vocabulary
  bool distinct = false;      ///< no id twice in a block
  /// Ids for which it returns false are not drawn (control and unused tokens); empty = all may be drawn.
  std::function<bool(std::int32_t)> usable;
};

struct ScoringVocabulary {
  std::int64_t size = 0;
  std::optional<std::int32_t> bos;  ///< put in front where given
};

struct ScoringPrompt {
  std::vector<std::int32_t> tokens;  ///< [prefix + block * repeats]
  std::int64_t prefix = 0;           ///< 1 where BOS stands in front, else 0
  std::int64_t block = 0;            ///< K as used: shorter than asked for where the context is short
  std::int64_t repeats = 0;
  std::uint64_t seed = 0;
  std::int64_t id_low = 0;
  std::int64_t id_high = 0;  ///< exclusive
  bool distinct = false;
};

/// The prompt for a model that was trained for `context` tokens: K = min(block, floor((context - 1) / repeats)).
/// Throws InvalidArgument for a block below 1, fewer than 2 repeats, an id range that is empty or outside the
/// vocabulary, no usable id, fewer usable ids than a distinct block needs, a context too short for one id per block.
ScoringPrompt make_scoring_prompt(const ScoringPromptSettings& settings, const ScoringVocabulary& vocabulary,
                                  std::int64_t context);

}  // namespace razorkv
