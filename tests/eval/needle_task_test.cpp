#include "eval/needle_task.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "razorkv/error.h"

namespace razorkv {
namespace {

/// One token per byte; special text is marked by an offset.
std::vector<Token> bytes(std::string_view text, bool special) {
  std::vector<Token> out;
  for (const char c : text) out.push_back(static_cast<unsigned char>(c) + (special ? 256 : 0));
  return out;
}

std::string text_of(const std::vector<Token>& tokens) {
  std::string out;
  for (const Token token : tokens) out += static_cast<char>(token % 256);
  return out;
}

NeedleSettings settings(std::int64_t length) {
  NeedleSettings out;
  out.length = length;
  return out;
}

TEST(NeedleTask, HasExactlyTheLengthAndEveryNeedleAtItsDepth) {
  const std::string hay(6000, 'h');
  const NeedleTask task = make_needle_task(hay, settings(4001), bytes);
  ASSERT_EQ(task.context.size(), 4001U);
  ASSERT_EQ(task.needles.size(), 11U);
  const std::string text = text_of(task.context);
  std::size_t hay_seen = 0;
  std::size_t place = text.find("\n\n", text.find("<|im_start|>user")) + 2;
  std::int64_t counted = 0;
  for (const Needle& needle : task.needles) {
    const std::string inserted = "\nThe special magic " + needle.city + " number is: " + needle.digits + ".\n";
    const std::size_t found = text.find(inserted);
    ASSERT_NE(found, std::string::npos);
    EXPECT_EQ(static_cast<std::size_t>(needle.position), found);
    hay_seen += static_cast<std::size_t>(std::count(text.begin() + static_cast<std::ptrdiff_t>(place),
                                                    text.begin() + static_cast<std::ptrdiff_t>(found), 'h'));
    EXPECT_EQ(static_cast<std::int64_t>(hay_seen),
              static_cast<std::int64_t>(static_cast<double>(task.haystack_tokens) * needle.depth / 100.0));
    place = found + inserted.size();
    EXPECT_TRUE(text_of(needle.question).ends_with("The special magic " + needle.city + " number is:"));
    EXPECT_EQ(text_of(needle.question).find(needle.digits), std::string::npos);
    ++counted;
  }
  EXPECT_EQ(counted, 11);
  EXPECT_EQ(text.back(), 'h');
}

TEST(NeedleTask, SeedsDecideNumbersAndOrder) {
  const std::string hay(6000, 'h');
  NeedleSettings other = settings(3000);
  other.seed = 2;
  const NeedleTask a = make_needle_task(hay, settings(3000), bytes);
  const NeedleTask again = make_needle_task(hay, settings(3000), bytes);
  const NeedleTask b = make_needle_task(hay, other, bytes);
  EXPECT_EQ(a.context, again.context);
  EXPECT_NE(a.context, b.context);
  std::set<std::string> cities, numbers;
  for (const Needle& needle : a.needles) {
    cities.insert(needle.city);
    numbers.insert(needle.digits);
    EXPECT_EQ(needle.digits.size(), 7U);
    EXPECT_NE(needle.digits[0], '0');
  }
  EXPECT_EQ(cities.size(), 11U);
  EXPECT_EQ(numbers.size(), 11U);
}

TEST(NeedleTask, DepthsMayComeInAnyOrder) {
  NeedleSettings mixed = settings(2000);
  mixed.depths = {100, 0, 50};
  const NeedleTask task = make_needle_task(std::string(6000, 'h'), mixed, bytes);
  EXPECT_GT(task.needles[0].position, task.needles[2].position);
  EXPECT_GT(task.needles[2].position, task.needles[1].position);
  EXPECT_NE(text_of(task.context).back(), 'h');  // the needle of depth 100 is last
}

TEST(NeedleTask, RefusesWhatCannotBeBuilt) {
  const std::string hay(6000, 'h');
  EXPECT_THROW(make_needle_task(hay, settings(500), bytes), InvalidArgument);
  EXPECT_THROW(make_needle_task(std::string(100, 'h'), settings(4000), bytes), InvalidArgument);
  NeedleSettings bad = settings(4000);
  bad.depths = {101};
  EXPECT_THROW(make_needle_task(hay, bad, bytes), InvalidArgument);
  bad.depths.assign(12, 5.0);
  EXPECT_THROW(make_needle_task(hay, bad, bytes), InvalidArgument);
  bad.depths.clear();
  EXPECT_THROW(make_needle_task(hay, bad, bytes), InvalidArgument);
}

TEST(NeedleScore, DigitsMustOccurWhole) {
  Needle needle;
  needle.digits = "1234567";
  EXPECT_TRUE(needle_found(needle, " 1234567."));
  EXPECT_FALSE(needle_found(needle, " 123456"));
  EXPECT_FALSE(needle_found(needle, "1 234567"));
  EXPECT_FALSE(needle_found(needle, ""));
}

}  // namespace
}  // namespace razorkv
