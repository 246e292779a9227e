#include "engine/grammar_check.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <map>
#include <set>
#include <string_view>

#include "base/utf8.h"
#include "razorkv/error.h"

namespace razorkv {
namespace {

constexpr int kDeepest = 200;
constexpr std::int64_t kMostRepeated = 2000;
constexpr std::size_t kLongest = 1U << 20U;  // bytes

class GrammarReader {
 public:
  GrammarReader(std::string_view text, const Vocabulary& vocabulary) : text_(text), vocabulary_(vocabulary) {}

  void read(const std::string& root) {
    skip_space(true);
    while (!at_end()) {
      defined_.insert(name());
      skip_space(false);
      expect("::=");
      skip_space(true);
      alternates(0);
      if (!at_end() && peek() != '\n' && peek() != '\r') fail("a line end after the rule");
      skip_space(true);
    }
    for (const auto& [used, line] : used_) {
      if (!defined_.contains(used)) fail_at(line, "a rule '" + used + "', which is used here", "no such rule");
    }
    if (!defined_.contains(root)) fail("a rule '" + root + "'");
  }

 private:
  bool at_end() const { return place_ >= text_.size(); }
  char peek() const { return at_end() ? '\0' : text_[place_]; }
  static bool is_digit(char c) { return c >= '0' && c <= '9'; }
  static bool is_word(char c) { return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-'; }

  std::int64_t line() const {
    const auto end = text_.begin() + static_cast<std::ptrdiff_t>(std::min(place_, text_.size()));
    return 1 + std::count(text_.begin(), end, '\n');
  }
  [[noreturn]] static void fail_at(std::int64_t line, const std::string& expected, const std::string& found) {
    throw InvalidArgument("grammar, line " + std::to_string(line) + ": expected " + expected + ", found " + found);
  }
  [[noreturn]] void fail(const std::string& expected) const {
    const std::string rest = replace_invalid_utf8(text_.substr(std::min(place_, text_.size()), 20));
    fail_at(line(), expected, at_end() ? "the end" : "'" + rest.substr(0, rest.find('\n')) + "'");
  }

  void skip_space(bool lines) {
    while (!at_end()) {
      const char c = peek();
      if (c == '#') {
        while (!at_end() && peek() != '\n' && peek() != '\r') ++place_;
      } else if (c == ' ' || c == '\t' || (lines && (c == '\n' || c == '\r'))) {
        ++place_;
      } else {
        return;
      }
    }
  }

  void expect(std::string_view word) {
    if (text_.substr(std::min(place_, text_.size()), word.size()) != word) fail("'" + std::string(word) + "'");
    place_ += word.size();
  }

  std::string name() {
    const std::size_t begin = place_;
    while (is_word(peek())) ++place_;
    if (place_ == begin) fail("the name of a rule");
    return std::string(text_.substr(begin, place_ - begin));
  }

  std::int64_t number() {
    if (!is_digit(peek())) fail("a number");
    std::int64_t value = 0;
    while (is_digit(peek())) {
      value = std::min<std::int64_t>(value * 10 + (peek() - '0'), 1'000'000'000'000);
      ++place_;
    }
    return value;
  }

  void character() {
    if (at_end()) fail("a character");
    if (peek() != '\\') {
      ++place_;
      return;
    }
    ++place_;
    const char kind = peek();
    if (kind == '\0' || std::string_view("xuUtrn\\\"[]-").find(kind) == std::string_view::npos) fail("a known escape");
    ++place_;
    const int digits = kind == 'x' ? 2 : kind == 'u' ? 4 : kind == 'U' ? 8 : 0;
    for (int i = 0; i < digits; ++i) {
      if (std::isxdigit(static_cast<unsigned char>(peek())) == 0) fail("a hexadecimal digit");
      ++place_;
    }
  }

  void literal() {
    ++place_;
    while (peek() != '"' || at_end()) character();
    ++place_;
  }

  void character_class() {
    ++place_;
    if (peek() == '^') ++place_;
    while (peek() != ']' || at_end()) character();
    ++place_;
  }

  void token() {
    if (peek() == '!') ++place_;
    const std::size_t begin = place_;
    expect("<");
    if (peek() == '[') {
      ++place_;
      const std::int64_t id = number();
      if (id >= vocabulary_.size()) fail("the id of a token before this");
      expect("]>");
      return;
    }
    while (!at_end() && peek() != '>') ++place_;
    expect(">");
    const std::string_view whole = text_.substr(begin, place_ - begin);
    if (vocabulary_.tokenize(whole, false, true).size() != 1) {
      fail_at(line(), "a single token of the vocabulary", "'" + replace_invalid_utf8(whole) + "'");
    }
  }

  void repetition() {
    ++place_;
    skip_space(false);
    const std::int64_t least = number();
    skip_space(false);
    std::int64_t most = least;
    if (peek() == ',') {
      ++place_;
      skip_space(false);
      if (is_digit(peek())) most = number();
      skip_space(false);
    }
    if (most < least || most > kMostRepeated)
      fail("repetitions of at most " + std::to_string(kMostRepeated) + " before this");
    expect("}");
  }

  void alternates(int depth) {
    sequence(depth);
    while (peek() == '|') {
      ++place_;
      skip_space(true);
      sequence(depth);
    }
  }

  void sequence(int depth) {
    bool item = false;  // there is something to repeat
    while (!at_end()) {
      const char c = peek();
      if (c == '"') {
        literal();
        item = true;
      } else if (c == '[') {
        character_class();
        item = true;
      } else if (c == '<' || c == '!') {
        token();
        item = true;
      } else if (is_word(c)) {
        const std::int64_t here = line();
        used_.emplace(name(), here);
        item = true;
      } else if (c == '(') {
        if (depth >= kDeepest) fail("parentheses at most " + std::to_string(kDeepest) + " deep");
        ++place_;
        skip_space(true);
        alternates(depth + 1);
        expect(")");
        item = true;
      } else if (c == '.') {
        ++place_;
        item = true;
      } else if (c == '*' || c == '+' || c == '?') {
        if (!item) fail("something to repeat before this");
        ++place_;
      } else if (c == '{') {
        if (!item) fail("something to repeat before this");
        repetition();
      } else {
        return;
      }
      skip_space(depth > 0);
    }
  }

  std::string_view text_;
  const Vocabulary& vocabulary_;
  std::size_t place_ = 0;
  std::set<std::string> defined_;
  std::map<std::string, std::int64_t> used_;  // rule -> line of its first use
};

}  // namespace

void check_grammar(const std::string& text, const std::string& root, const Vocabulary& vocabulary) {
  if (text.size() > kLongest) {
    throw InvalidArgument("the grammar has " + std::to_string(text.size()) + " bytes, at most " +
                          std::to_string(kLongest) + " are taken");
  }
  if (text.find('\0') != std::string::npos || !is_valid_utf8(text)) {
    throw InvalidArgument("the grammar must be UTF-8 text without NUL bytes");
  }
  GrammarReader(text, vocabulary).read(root);
}

}  // namespace razorkv
