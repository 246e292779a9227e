#include "eval/haystack.h"

#include <gtest/gtest.h>

#include <fstream>

#include "razorkv/error.h"
#include "support/temporary_folder.h"

namespace razorkv {
namespace {

std::string write(const std::string& name, const std::string& content) {
  static const test::TemporaryFolder folder;
  const std::string path = folder.file(name);
  std::ofstream(path, std::ios::binary) << content;
  return path;
}

TEST(Haystack, BooksLoseMarkLineEndsAndFrame) {
  EXPECT_EQ(read_haystack(write("book.txt",
                                "\xEF\xBB\xBFlicence\r\n*** START OF THIS BOOK ***\r\none\r\ntwo\rthree\n*** END OF "
                                "THIS BOOK ***\r\nmore")),
            "one\ntwo\nthree\n");
  EXPECT_EQ(read_haystack(write("plain.txt", "as it is\n")), "as it is\n");
}

TEST(Haystack, JsonHasTheTextInText) {
  EXPECT_EQ(read_haystack(write("good.json", R"({"text": "a\nb"})")), "a\nb");
  EXPECT_THROW(read_haystack(write("other.json", R"({"words": "a"})")), FileError);
  EXPECT_THROW(read_haystack(write("number.json", R"({"text": 3})")), FileError);
  EXPECT_THROW(read_haystack(write("cut.json", R"({"text": "a)")), FileError);
}

TEST(Haystack, EmptyAndMissingAreRefused) {
  EXPECT_THROW(read_haystack(write("empty.txt", "")), FileError);
  EXPECT_THROW(read_haystack(write("frame.txt", "x\n*** START OF X ***\n*** END OF X ***\n")), FileError);
  EXPECT_THROW(read_haystack("/no/such/file.txt"), FileError);
}

TEST(Haystack, CountsCharactersNotBytes) {
  EXPECT_EQ(from_character("aé中b", 0), "aé中b");
  EXPECT_EQ(from_character("aé中b", 2), "中b");
  EXPECT_EQ(from_character("aé中b", 3), "b");
  EXPECT_THROW(from_character("aé中b", 4), InvalidArgument);
  EXPECT_THROW(from_character("abc", -1), InvalidArgument);
}

}  // namespace
}  // namespace razorkv
