#include "model/special_tokens.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

namespace razorkv {
namespace {

SpecialToken token(std::int32_t id, std::string text, bool user_defined = true) {
  return {id, std::move(text), user_defined, false, false};
}

bool always(const SpecialToken&, std::size_t, std::size_t) { return true; }

std::string show(std::string_view text, const std::vector<TextPiece>& pieces) {
  std::string out;
  for (const TextPiece& piece : pieces) {
    out += piece.token < 0 ? "[" + std::string(text.substr(piece.begin, piece.end - piece.begin)) + "]"
                           : "<" + std::to_string(piece.token) + ">";
  }
  return out;
}

TEST(SpecialTokens, LongerTokensWinWhereverTheyLie) {
  const SpecialTokens special({token(1, "ab"), token(2, "bcd"), token(3, "x")});
  EXPECT_EQ(show("zabcdx", special.split("zabcdx", always)), "[za]<2><3>");
  EXPECT_EQ(show("abab", special.split("abab", always)), "<1><1>");
  EXPECT_EQ(show("", special.split("", always)), "");
  EXPECT_EQ(show("plain", special.split("plain", always)), "[plain]");
}

TEST(SpecialTokens, RunsAreCutFromTheLeft) {
  std::vector<SpecialToken> tokens;
  for (int n = 2; n <= 5; ++n) tokens.push_back(token(n, std::string(static_cast<std::size_t>(n), '\n')));
  const SpecialTokens special(tokens);
  const std::string text(13, '\n');
  EXPECT_EQ(show(text, special.split(text, always)), "<5><5><3>");
}

TEST(SpecialTokens, StripsWhiteSpaceAround) {
  std::vector<SpecialToken> tokens = {token(1, "<m>")};
  tokens[0].strip_left = true;
  tokens[0].strip_right = true;
  EXPECT_EQ(show("a  <m>\n b", SpecialTokens(tokens).split("a  <m>\n b", always)), "[a]<1>[b]");
}

TEST(SpecialTokens, RefusedTokensStayTextAndAreCut) {
  const SpecialTokens special({token(1, "<end>"), token(2, "<sys>", false)});
  const auto only_left = [](const SpecialToken&, std::size_t begin, std::size_t) { return begin < 5; };
  const std::string text = "<end>a<end><sys>";
  EXPECT_EQ(show(text, special.split(text, only_left)), "<1>[a<][end><sys>]");
}

// The order in which libllama cuts text, written the slow way: token after token, fragment after fragment.
std::vector<TextPiece> slow_split(std::string_view text, const std::vector<SpecialToken>& sorted) {
  std::vector<TextPiece> pieces;
  if (!text.empty()) pieces.push_back({-1, 0, text.size()});
  for (const SpecialToken& special : sorted) {
    std::vector<TextPiece> next;
    for (const TextPiece& piece : pieces) {
      std::size_t begin = piece.begin;
      while (piece.token < 0) {
        const std::size_t found = text.substr(0, piece.end).find(special.text, begin);
        if (found == std::string_view::npos) break;
        if (found > begin) next.push_back({-1, begin, found});
        begin = found + special.text.size();
        next.push_back({special.id, found, begin});
      }
      if (piece.token >= 0 || begin < piece.end) next.push_back({piece.token, begin, piece.end});
    }
    pieces = next;
  }
  return pieces;
}

TEST(SpecialTokens, EqualsTheSlowWayOnRandomText) {
  std::mt19937 random(11);
  for (int round = 0; round < 3000; ++round) {
    std::vector<SpecialToken> tokens;
    for (std::int32_t id = 0; id < 6; ++id) {
      std::string word(1 + random() % 4, 'a');
      for (char& c : word) c = static_cast<char>('a' + random() % 2);
      const bool known = std::any_of(tokens.begin(), tokens.end(), [&](const auto& t) { return t.text == word; });
      if (!known) tokens.push_back(token(id, word));
    }
    std::string text(random() % 20, 'a');
    for (char& c : text) c = static_cast<char>('a' + random() % 3);
    const SpecialTokens special(tokens);
    const std::vector<SpecialToken> sorted(special.tokens().begin(), special.tokens().end());
    ASSERT_EQ(show(text, special.split(text, always)), show(text, slow_split(text, sorted))) << text;
  }
}

}  // namespace
}  // namespace razorkv
