#include "base/sha256.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "razorkv/error.h"
#include "support/temporary_folder.h"

namespace razorkv {
namespace {

std::string hash(std::string_view text) {
  Sha256 sha;
  sha.update(text);
  return sha.hex();
}

// Vectors of FIPS 180-4's examples.
TEST(Sha256, PublishedVectors) {
  EXPECT_EQ(hash(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(hash("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(hash("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(hash(std::string(1000000, 'a')), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, PiecesEqualTheWhole) {
  const std::string text(300, 'x');
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    Sha256 sha;
    sha.update(std::string_view(text).substr(0, cut));
    sha.update(std::string_view(text).substr(cut));
    ASSERT_EQ(sha.hex(), hash(text)) << "cut at " << cut;
  }
}

TEST(Sha256, EveryLengthAroundTheBlockDiffers) {
  std::string previous;
  for (std::size_t length = 50; length < 140; ++length) {
    const std::string now = hash(std::string(length, '\0'));
    EXPECT_NE(now, previous);
    previous = now;
  }
}

TEST(Sha256, FileEqualsItsBytes) {
  const test::TemporaryFolder folder;
  const std::string path = folder.file("text");
  const std::string text(100001, 'q');
  std::ofstream(path, std::ios::binary) << text;
  EXPECT_EQ(sha256_of_file(path), hash(text));
  EXPECT_THROW(sha256_of_file(path + ".absent"), FileError);
  EXPECT_THROW(sha256_of_file(folder.path()), FileError);
}

}  // namespace
}  // namespace razorkv
