#include "base/utf8.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace razorkv {
namespace {

const std::string kBad = "\xEF\xBF\xBD";

TEST(Utf8, ReplacesMaximalInvalidSubsequences) {
  EXPECT_EQ(replace_invalid_utf8("aé中😀"), "aé中😀");
  EXPECT_EQ(replace_invalid_utf8("a\x80z"), "a" + kBad + "z");
  EXPECT_EQ(replace_invalid_utf8("\xE4\xB8z"), kBad + "z");                        // cut in the middle
  EXPECT_EQ(replace_invalid_utf8("\xF0\x9F\x98"), kBad);                           // cut at the end
  EXPECT_EQ(replace_invalid_utf8("\xC0\xAF"), kBad + kBad);                        // overlong
  EXPECT_EQ(replace_invalid_utf8("\xED\xA0\x80"), kBad + kBad + kBad);             // surrogate
  EXPECT_EQ(replace_invalid_utf8("\xF4\x90\x80\x80"), kBad + kBad + kBad + kBad);  // above U+10FFFF
  EXPECT_EQ(replace_invalid_utf8("\xF7\xBF\xBF\xBF"), kBad + kBad + kBad + kBad);
  EXPECT_EQ(replace_invalid_utf8(std::string("a\0b", 3)), std::string("a\0b", 3));
}

TEST(Utf8, RepairedTextIsValidAndStays) {
  std::mt19937 random(7);
  for (int round = 0; round < 2000; ++round) {
    std::string text(random() % 12, '\0');
    for (char& c : text) c = static_cast<char>(random() % 3 == 0 ? random() % 128 : 128 + random() % 128);
    const std::string repaired = replace_invalid_utf8(text);
    EXPECT_TRUE(is_valid_utf8(repaired));
    EXPECT_EQ(replace_invalid_utf8(repaired), repaired);
    EXPECT_EQ(is_valid_utf8(text), repaired == text);
  }
}

TEST(Utf8, CompletePrefixStopsBeforeAnUnfinishedCharacter) {
  const std::string text = "aé中😀";
  const std::size_t expected[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10};
  for (std::size_t length = 0; length <= text.size(); ++length) {
    EXPECT_EQ(complete_utf8_prefix(text.substr(0, length)), expected[length]) << length;
  }
  EXPECT_EQ(complete_utf8_prefix("a\x80"), 2U);     // cannot be completed
  EXPECT_EQ(complete_utf8_prefix("\xC0"), 1U);      // no lead byte
  EXPECT_EQ(complete_utf8_prefix("\xED\xA0"), 2U);  // surrogate: cannot be completed
  EXPECT_EQ(complete_utf8_prefix("\xF0\x9F"), 0U);
}

}  // namespace
}  // namespace razorkv
