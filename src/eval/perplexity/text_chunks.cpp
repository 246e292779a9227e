#include "eval/perplexity/text_chunks.h"

#include <fmt/format.h>

#include <algorithm>

#include "razorkv/error.h"

namespace razorkv {

std::vector<Token> TextChunks::input(std::int64_t index) const {
  const auto begin = tokens.begin() + index * context;
  std::vector<Token> out(begin, begin + context - 1);
  if (bos >= 0) out.front() = bos;
  return out;
}

std::span<const Token> TextChunks::targets(std::int64_t index) const {
  return std::span(tokens).subspan(static_cast<std::size_t>(index * context + first() + 1),
                                   static_cast<std::size_t>(scored()));
}

TextChunks cut_text(const Vocabulary& vocabulary, std::string_view text, std::int64_t context, std::int64_t most) {
  if (context < 4) throw InvalidArgument(fmt::format("chunks must have 4 tokens or more, found {}", context));
  if (most < 0) throw InvalidArgument(fmt::format("the number of chunks must be 0 (all) or more, found {}", most));
  TextChunks out;
  out.context = context;
  if (vocabulary.adds_bos()) out.bos = vocabulary.bos();
  out.tokens = vocabulary.tokenize(text, false, false);
  if (out.bos >= 0) out.tokens.insert(out.tokens.begin(), out.bos);
  const auto found = static_cast<std::int64_t>(out.tokens.size());
  if (found < 2 * context) {
    throw InvalidArgument(
        fmt::format("the text has {} tokens; chunks of {} need {} or more: take a longer text or "
                    "shorter chunks",
                    found, context, 2 * context));
  }
  const std::int64_t chunks = most > 0 ? std::min(most, found / context) : found / context;
  out.tokens.resize(static_cast<std::size_t>(chunks * context));
  return out;
}

void check_fits(const TextChunks& chunks, std::int64_t trained) {
  if (chunks.context <= trained) return;
  throw InvalidArgument(
      fmt::format("chunks have {} tokens, the model was trained for {}: take shorter ones", chunks.context, trained));
}

}  // namespace razorkv
