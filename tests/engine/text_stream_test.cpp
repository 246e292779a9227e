#include "engine/text_stream.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "razorkv/error.h"

namespace razorkv {
namespace {

struct Streamed {
  std::vector<std::string> chunks;
  std::string text;
  std::string stop;
};

Streamed stream(const std::vector<std::string>& stops, const std::vector<std::string>& tokens) {
  TextStream stream(stops);
  Streamed out;
  for (const std::string& token : tokens) out.chunks.push_back(stream.push(token));
  out.chunks.push_back(stream.finish());
  for (const std::string& chunk : out.chunks) out.text += chunk;
  out.stop = stream.stop();
  return out;
}

std::vector<std::string> letters(const std::string& text) {
  std::vector<std::string> out;
  for (const char c : text) out.emplace_back(1, c);
  return out;
}

TEST(TextStream, NoPartOfAStopStringIsShownHoweverItIsCut) {
  const std::string stop = "<stöp>";
  const std::string text = "before" + stop + "after";
  for (std::size_t first = 0; first <= text.size(); ++first) {
    for (std::size_t second = first; second <= text.size(); ++second) {
      const Streamed out =
          stream({stop}, {text.substr(0, first), text.substr(first, second - first), text.substr(second)});
      EXPECT_EQ(out.text, "before") << first << " " << second;
      EXPECT_EQ(out.stop, stop);
    }
  }
  EXPECT_EQ(stream({stop}, letters(text)).text, "before");
}

TEST(TextStream, HeldTailIsGivenOutAtTheEnd) {
  const Streamed out = stream({"abc"}, {"x", "a", "b"});
  EXPECT_EQ(out.chunks, (std::vector<std::string>{"x", "", "", "ab"}));
  EXPECT_EQ(out.stop, "");
  EXPECT_EQ(stream({"abc", "ZZ"}, {"ab", "ZZ"}).text, "ab");  // ended by another stop string
  EXPECT_EQ(stream({"abc"}, {"ab", "d"}).chunks, (std::vector<std::string>{"", "abd", ""}));
}

TEST(TextStream, FirstCompleteStopStringWins) {
  EXPECT_EQ(stream({"abcd", "bc"}, letters("xabcd")).text, "xa");
  EXPECT_EQ(stream({"abcd", "bc"}, {"xabcd"}).text, "xa");
  EXPECT_EQ(stream({"bc", "abc"}, {"xabc"}).text, "x");  // both end here: the longer one
  EXPECT_EQ(stream({"aab"}, letters("aaaab")).text, "aa");
}

TEST(TextStream, CharactersAreNeverSplit) {
  const std::string text = "né中😀.";
  const Streamed out = stream({}, letters(text));
  EXPECT_EQ(out.text, text);
  for (const std::string& chunk : out.chunks) {
    EXPECT_TRUE(chunk.empty() || (static_cast<unsigned char>(chunk[0]) & 0xC0U) != 0x80U) << chunk;
  }
  EXPECT_EQ(stream({}, {"a\xE4\xB8"}).chunks, (std::vector<std::string>{"a", "\xEF\xBF\xBD"}));
  EXPECT_EQ(stream({}, {"a\xE4", "b"}).text,
            "a\xEF\xBF\xBD"
            "b");
}

TEST(TextStream, TextDoesNotDependOnTheCuts) {
  std::mt19937 random(5);
  const std::vector<std::string> alphabet = {"a", "b", "é", "\xE4", "\xB8", "\xAD"};
  for (int round = 0; round < 5000; ++round) {
    std::string text;
    for (int i = 0; i < 14; ++i) text += alphabet[random() % alphabet.size()];
    const std::vector<std::string> stops = {"ab", "aéb", "bba"};
    std::vector<std::string> tokens;
    for (std::size_t i = 0; i < text.size();) {
      const std::size_t length = 1 + random() % 5;
      tokens.push_back(text.substr(i, length));
      i += length;
    }
    const Streamed cut = stream(stops, tokens);
    ASSERT_EQ(cut.text, stream(stops, {text}).text);
    ASSERT_EQ(cut.text, stream(stops, letters(text)).text);
    for (const std::string& stop : stops) ASSERT_EQ(cut.text.find(stop), std::string::npos);
  }
}

TEST(TextStream, RefusesUselessStopStrings) {
  EXPECT_THROW(TextStream({""}), InvalidArgument);
  EXPECT_THROW(TextStream({"\xFF"}), InvalidArgument);
}

TEST(TextStream, GivesNothingBehindAStop) {
  TextStream stream({"."});
  EXPECT_EQ(stream.push("a.b"), "a");
  EXPECT_TRUE(stream.stopped());
  EXPECT_EQ(stream.push("c"), "");
  EXPECT_EQ(stream.finish(), "");
}

}  // namespace
}  // namespace razorkv
