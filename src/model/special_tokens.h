// Finding the special tokens of a vocabulary in text, as libllama does, but in linear time and with a say per place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace razorkv {

struct SpecialToken {
  std::int32_t id = 0;
  std::string text;           ///< not empty
  bool user_defined = false;  ///< recognised in every text; other special tokens (control, unknown) only on request
  bool strip_left = false;    ///< white space before it is dropped
  bool strip_right = false;   ///< white space behind it is dropped
};

/// A piece of split text: a special token, or plain text to be tokenised.
struct TextPiece {
  std::int32_t token = -1;  ///< -1: plain text
  std::size_t begin = 0;    ///< bytes [begin, end) of the text
  std::size_t end = 0;
};

class SpecialTokens {
 public:
  SpecialTokens() = default;
  explicit SpecialTokens(std::vector<SpecialToken> tokens);

  /// Says whether this occurrence, bytes [begin, end), may become the token.
  using Allowed = std::function<bool(const SpecialToken& token, std::size_t begin, std::size_t end)>;

  /// Splits `text`. Longer tokens win over shorter ones wherever they lie, then lower ids, then places further left:
  /// the order in which libllama cuts text. Where a user-defined token was not allowed, plain text is cut inside the
  /// occurrence, so that a tokenizer that gets the pieces one by one cannot recognise it either.
  std::vector<TextPiece> split(std::string_view text, const Allowed& allowed) const;

  std::span<const SpecialToken> tokens() const { return tokens_; }

 private:
  /// Index of the longest token that begins at `begin`; -1: none.
  std::int32_t longest_at(std::string_view text, std::size_t begin) const;

  std::vector<SpecialToken> tokens_;                                         // longest first
  std::vector<std::vector<std::pair<unsigned char, std::uint32_t>>> nodes_;  // trie: byte -> node
  std::vector<std::int32_t> token_of_node_;                                  // index into tokens_, -1: none
  std::vector<std::int32_t> shorter_;  // of each token: index of the longest token that is a proper prefix of it, or -1
};

}  // namespace razorkv
