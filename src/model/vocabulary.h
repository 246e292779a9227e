// The vocabulary of a GGUF file: text to tokens and back, through libllama.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/special_tokens.h"
#include "razorkv/types.h"

struct llama_model;
struct llama_vocab;

namespace razorkv {

/// Immutable, safe to use from several threads. Text may hold any bytes: each maximal invalid UTF-8 subsequence is
/// tokenised as U+FFFD, whatever the kind of vocabulary. Equal to libllama's tokenizer on all valid text.
class Vocabulary {
 public:
  /// `path`: a GGUF file. `pre_tokenizer`: use this one instead of the file's. Throws FileError (unreadable, or
  /// metadata that are not what they should be) and UnsupportedModel (a kind of vocabulary that is not known).
  static std::shared_ptr<const Vocabulary> open(const std::string& path, const std::string& pre_tokenizer = {});
  ~Vocabulary();
  Vocabulary(const Vocabulary&) = delete;
  Vocabulary& operator=(const Vocabulary&) = delete;

  /// `add_special`: BOS before and EOS behind where the vocabulary asks for it. `parse_special`: text of control tokens
  /// becomes those tokens; off, it stays ordinary text. Throws InvalidArgument for text of 2 GiB and more, and for one
  /// unbroken run of characters longer than kLongestRun with vocabularies whose pre-tokenizer recurses.
  std::vector<Token> tokenize(std::string_view text, bool add_special, bool parse_special) const;

  /// As tokenize() without BOS and EOS; `allowed` decides about every special token found in the text (byte range in
  /// the text given, which must be valid UTF-8).
  std::vector<Token> tokenize(std::string_view text, const SpecialTokens::Allowed& allowed) const;

  /// Text of the tokens. May end inside a UTF-8 character. Control tokens are left out unless `special`. The space that
  /// some vocabularies put before text is taken off again. Throws InvalidArgument for a token outside the vocabulary.
  std::string detokenize(std::span<const Token> tokens, bool special = false) const;
  /// Bytes of one token in the middle of a text.
  std::string piece(Token token, bool special = false) const;

  Token bos() const;  ///< -1: none
  Token eos() const;  ///< -1: none
  Token eot() const;  ///< end of turn; -1: none
  bool adds_bos() const;
  bool adds_eos() const;
  bool is_end_of_generation(Token token) const;
  bool is_control(Token token) const;
  std::int64_t size() const;
  /// The file's own chat template; empty: none.
  const std::string& chat_template() const { return chat_template_; }
  const SpecialTokens& special_tokens() const { return special_; }
  const llama_vocab* handle() const { return vocab_; }

  /// Characters. A run is text without an ASCII white-space character inside, with the white space behind it.
  static constexpr std::int64_t kLongestRun = 1 << 21;

 private:
  Vocabulary() = default;
  void tokenize_plain(std::string_view text, std::vector<Token>& out) const;
  void check(Token token) const;

  struct Free {
    void operator()(llama_model* model) const;
  };
  std::unique_ptr<llama_model, Free> model_;
  const llama_vocab* vocab_ = nullptr;
  SpecialTokens special_;
  std::string chat_template_;
  bool adds_space_prefix_ = false;  // tokenising "a" gives " a"
  bool recursive_ = false;          // the pre-tokenizer may recurse once per character of a run
  bool words_span_spaces_ = false;  // "exaone-moe": its words go on over single spaces, so the text is one run
  bool slow_numbers_ = false;       // "superbpe": quadratic in the digits of a number
};

}  // namespace razorkv
