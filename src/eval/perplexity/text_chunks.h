// A long text cut as llama.cpp's perplexity cuts it (evaluation section 6).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "model/vocabulary.h"

namespace razorkv {

/// Chunks of `context` tokens that do not overlap. The second half of each is scored: the logits at positions
/// first() ... context - 2 predict the tokens at first() + 1 ... context - 1.
struct TextChunks {
  std::int64_t context = 0;
  std::vector<Token> tokens;  ///< [count() * context], as in the text
  Token bos = -1;             ///< takes the place of a chunk's first token when it is fed; -1: it stays

  std::int64_t count() const { return context > 0 ? static_cast<std::int64_t>(tokens.size()) / context : 0; }
  std::int64_t first() const { return context / 2; }
  std::int64_t scored() const { return context - 1 - first(); }  ///< tokens of a chunk
  /// What to feed for chunk `index`: its first context - 1 tokens.
  std::vector<Token> input(std::int64_t index) const;
  /// Tokens to score, [scored()].
  std::span<const Token> targets(std::int64_t index) const;
};

/// Tokenises the whole text at once, with BOS in front if the vocabulary adds it; the remainder is dropped, and so are
/// chunks from `most` on (0 = all). Throws InvalidArgument for a context below 4 or a text of fewer than two chunks.
TextChunks cut_text(const Vocabulary& vocabulary, std::string_view text, std::int64_t context, std::int64_t most);

/// Throws InvalidArgument for chunks longer than a model's context of `trained` tokens.
void check_fits(const TextChunks& chunks, std::int64_t trained);

}  // namespace razorkv
