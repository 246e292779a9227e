#include "model/vocabulary.h"

#include <llama.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstdio>
#include <limits>

#include "base/file_mapping.h"
#include "base/large_stack.h"
#include "base/utf8.h"
#include "model/gguf_file.h"
#include "model/library_log.h"
#include "model/vocabulary_check.h"
#include "razorkv/error.h"

namespace razorkv {
namespace {

// std::regex, which libllama uses for most pre-tokenizers, recurses once or more per character of a match. Measured
// with gcc 12's libstdc++ over 29 of libllama's pre-tokenizers: between 256 and 512 bytes per character.
constexpr std::int64_t kStackPerCharacter = 2048;
constexpr std::int64_t kInlineRun = 128;  // runs of ordinary text: on the caller's own stack
// The pre-tokenizer "superbpe" looks ahead to the end of a number at each of its digits: 10,000 digits took 4 seconds.
constexpr std::int64_t kLongestSlowNumber = 2000;

std::string metadata(const llama_model* model, const char* key) {
  std::array<char, 128> buffer{};
  const int length = llama_model_meta_val_str(model, key, buffer.data(), buffer.size());
  return length < 0 ? std::string() : std::string(buffer.data());
}

bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
bool starts_character(char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }

std::int64_t characters(std::string_view text) {
  return static_cast<std::int64_t>(std::count_if(text.begin(), text.end(), starts_character));
}

std::int64_t longest_run(std::string_view text) {
  std::int64_t longest = 0;
  std::int64_t run = 0;
  bool in_space = false;
  for (const char c : text) {
    if (in_space && !is_space(c)) {
      longest = std::max(longest, run);
      run = 0;
    }
    in_space = is_space(c);
    if (starts_character(c)) ++run;
  }
  return std::max(longest, run);
}

std::int64_t longest_digits(std::string_view text) {
  std::int64_t longest = 0;
  std::int64_t run = 0;
  for (const char c : text) {
    run = c >= '0' && c <= '9' ? run + 1 : 0;
    longest = std::max(longest, run);
  }
  return longest;
}

}  // namespace

void Vocabulary::Free::operator()(llama_model* model) const { llama_model_free(model); }

Vocabulary::~Vocabulary() = default;

std::shared_ptr<const Vocabulary> Vocabulary::open(const std::string& path, const std::string& pre_tokenizer) {
  silence_library_logs();
  {
    const FileMapping mapping(path);
    check_vocabulary(GgufFile::parse(mapping.bytes(), path));
  }
  std::array<llama_model_kv_override, 2> overrides{};
  llama_model_params params = llama_model_default_params();
  params.vocab_only = true;
  if (!pre_tokenizer.empty()) {
    overrides[0].tag = LLAMA_KV_OVERRIDE_TYPE_STR;
    std::snprintf(overrides[0].key, sizeof overrides[0].key, "tokenizer.ggml.pre");
    std::snprintf(overrides[0].val_str, sizeof overrides[0].val_str, "%s", pre_tokenizer.c_str());
    params.kv_overrides = overrides.data();
  }
  std::shared_ptr<Vocabulary> result(new Vocabulary);
  try {
    result->model_.reset(llama_model_load_from_file(path.c_str(), params));
  } catch (const std::exception&) {
    result->model_.reset();
  }
  const auto unsupported = [&](const std::string& found) {
    return UnsupportedModel(
        "'" + path + "': expected a vocabulary that libllama can read (tokenizer.ggml.model, tokens," +
        " token_type, and scores or merges), found " + found + "; convert the model with the tools of llama.cpp");
  };
  if (!result->model_) throw unsupported("one that it refuses");
  const llama_model* model = result->model_.get();
  result->vocab_ = llama_model_get_vocab(model);
  const enum llama_vocab_type type = llama_vocab_type(result->vocab_);
  if (type == LLAMA_VOCAB_TYPE_NONE || result->size() == 0) throw unsupported("none");
  if (result->adds_bos() && result->bos() < 0) throw unsupported("that BOS shall be added but no BOS token");
  if (result->adds_eos() && result->eos() < 0) throw unsupported("that EOS shall be added but no EOS token");

  result->recursive_ = type == LLAMA_VOCAB_TYPE_BPE;
  const std::string pre = pre_tokenizer.empty() ? metadata(model, "tokenizer.ggml.pre") : pre_tokenizer;
  result->words_span_spaces_ = pre == "exaone-moe";
  result->slow_numbers_ = pre == "superbpe";
  std::vector<SpecialToken> special;
  for (Token id = 0; id < result->size(); ++id) {
    const unsigned attributes = llama_vocab_get_attr(result->vocab_, id);
    const unsigned kinds = LLAMA_TOKEN_ATTR_CONTROL | LLAMA_TOKEN_ATTR_UNKNOWN | LLAMA_TOKEN_ATTR_USER_DEFINED;
    if ((attributes & kinds) == 0) continue;
    SpecialToken token;
    token.id = id;
    token.text = llama_vocab_get_text(result->vocab_, id);
    token.user_defined = (attributes & (LLAMA_TOKEN_ATTR_CONTROL | LLAMA_TOKEN_ATTR_UNKNOWN)) == 0;
    token.strip_left = (attributes & LLAMA_TOKEN_ATTR_LSTRIP) != 0;
    token.strip_right = (attributes & LLAMA_TOKEN_ATTR_RSTRIP) != 0;
    special.push_back(std::move(token));
  }
  result->special_ = SpecialTokens(std::move(special));
  std::vector<Token> probe;
  result->tokenize_plain("a", probe);
  result->adds_space_prefix_ = !probe.empty() && result->piece(probe.front()).starts_with(' ');
  if (const char* text = llama_model_chat_template(model, nullptr)) result->chat_template_ = text;
  return result;
}

void Vocabulary::tokenize_plain(std::string_view text, std::vector<Token>& out) const {
  const auto convert = [&] {
    const std::size_t before = out.size();
    // A token covers at least one byte, but for the space that some vocabularies put in front.
    out.resize(before + text.size() + 8);
    const auto room = static_cast<std::int32_t>(out.size() - before);
    std::int32_t count = llama_tokenize(vocab_, text.data(), static_cast<std::int32_t>(text.size()),
                                        out.data() + before, room, false, false);
    if (count < 0 && count != INT32_MIN) {
      out.resize(before + static_cast<std::size_t>(-count));
      count = llama_tokenize(vocab_, text.data(), static_cast<std::int32_t>(text.size()), out.data() + before, -count,
                             false, false);
    }
    if (count < 0) throw InvalidArgument("the text gives more tokens than can be counted in 32 bits; split it");
    out.resize(before + static_cast<std::size_t>(count));
  };
  std::int64_t run = 0;
  if (recursive_) run = words_span_spaces_ ? characters(text) : longest_run(text);
  if (run <= kInlineRun) {
    convert();
    return;
  }
  if (slow_numbers_ && longest_digits(text) > kLongestSlowNumber) {
    throw InvalidArgument("the text has a number of " + std::to_string(longest_digits(text)) + " digits, at most " +
                          std::to_string(kLongestSlowNumber) + " can be tokenised with this vocabulary; break the run");
  }
  if (run > kLongestRun) {
    throw InvalidArgument("the text has " + std::to_string(run) +
                          " characters in one run without white space, at most " + std::to_string(kLongestRun) +
                          " can be tokenised; break the run");
  }
  run_on_large_stack(static_cast<std::size_t>((run + 1024) * kStackPerCharacter), convert);
}

std::vector<Token> Vocabulary::tokenize(std::string_view text, const SpecialTokens::Allowed& allowed) const {
  if (text.size() >= static_cast<std::size_t>(INT_MAX) - 8) {
    throw InvalidArgument("the text has " + std::to_string(text.size()) + " bytes, at most " +
                          std::to_string(INT_MAX - 9) + " can be tokenised at once; split it");
  }
  std::vector<Token> out;
  try {
    for (const TextPiece& piece : special_.split(text, allowed)) {
      if (piece.token >= 0) {
        out.push_back(piece.token);
      } else {
        tokenize_plain(text.substr(piece.begin, piece.end - piece.begin), out);
      }
    }
  } catch (const Error&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw OutOfMemory("not enough memory to tokenise " + std::to_string(text.size()) + " bytes of text");
  } catch (const std::exception& error) {
    throw InvalidArgument(std::string("libllama cannot tokenise the text: ") + error.what());
  }
  return out;
}

std::vector<Token> Vocabulary::tokenize(std::string_view text, bool add_special, bool parse_special) const {
  std::string repaired;
  if (!is_valid_utf8(text)) {
    repaired = replace_invalid_utf8(text);
    text = repaired;
  }
  std::vector<Token> out = tokenize(
      text, [&](const SpecialToken& token, std::size_t, std::size_t) { return parse_special || token.user_defined; });
  if (add_special && adds_bos()) out.insert(out.begin(), bos());
  if (add_special && adds_eos()) out.push_back(eos());
  return out;
}

void Vocabulary::check(Token token) const {
  if (token < 0 || token >= size()) {
    throw InvalidArgument("token " + std::to_string(token) + " is outside the vocabulary of " + std::to_string(size()) +
                          " tokens (0 to " + std::to_string(size() - 1) + ")");
  }
}

std::string Vocabulary::piece(Token token, bool special) const {
  check(token);
  std::array<char, 128> small{};
  const int length =
      llama_token_to_piece(vocab_, token, small.data(), static_cast<std::int32_t>(small.size()), 0, special);
  if (length >= 0) return {small.data(), static_cast<std::size_t>(length)};
  std::string out(static_cast<std::size_t>(-length), '\0');
  llama_token_to_piece(vocab_, token, out.data(), -length, 0, special);
  return out;
}

std::string Vocabulary::detokenize(std::span<const Token> tokens, bool special) const {
  std::string out;
  bool first = true;
  for (const Token token : tokens) {
    std::string text = piece(token, special);
    // What the tokenizer puts before text: one space where tokenising "a" gives " a".
    if (first && adds_space_prefix_ && text.starts_with(' ')) text.erase(0, 1);
    if (!is_control(token)) first = false;
    out += text;
  }
  return out;
}

Token Vocabulary::bos() const { return llama_vocab_bos(vocab_); }
Token Vocabulary::eos() const { return llama_vocab_eos(vocab_); }
Token Vocabulary::eot() const { return llama_vocab_eot(vocab_); }
bool Vocabulary::adds_bos() const { return llama_vocab_get_add_bos(vocab_); }
bool Vocabulary::adds_eos() const { return llama_vocab_get_add_eos(vocab_); }
std::int64_t Vocabulary::size() const { return llama_vocab_n_tokens(vocab_); }

bool Vocabulary::is_end_of_generation(Token token) const {
  return token >= 0 && token < size() && llama_vocab_is_eog(vocab_, token);
}

bool Vocabulary::is_control(Token token) const {
  return token >= 0 && token < size() && llama_vocab_is_control(vocab_, token);
}

}  // namespace razorkv
