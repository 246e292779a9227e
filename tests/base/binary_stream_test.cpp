#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "base/binary_reader.h"
#include "base/binary_writer.h"
#include "base/sha256.h"
#include "razorkv/error.h"

namespace razorkv {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string written(const auto& put) {
  std::string out;
  BinaryWriter writer([&out](std::span<const std::byte> bytes) {
    out.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  });
  put(writer);
  writer.finish();
  EXPECT_EQ(writer.size(), out.size());
  return out;
}

/// Gives at most `piece` bytes at a time.
BinaryReader reader(const std::string& text, std::size_t piece = 1000) {
  return {"file", text.size(), [rest = std::string_view(text), piece](std::span<std::byte> out) mutable {
            const std::size_t n = std::min({out.size(), rest.size(), piece});
            std::memcpy(out.data(), rest.data(), n);
            rest.remove_prefix(n);
            return n;
          }};
}

std::string message_of(const auto& work) {
  try {
    work();
  } catch (const FileError& error) {
    return error.what();
  }
  return "no FileError";
}

TEST(BinaryStream, BytesAreLittleEndianAndEndInTheirHash) {
  const std::string out = written([](BinaryWriter& w) {
    w.u8(0x7f);
    w.u32(0x01020304);
    w.i64(-2);
    w.text("ab");
  });
  const std::string content("\x7f\x04\x03\x02\x01\xfe\xff\xff\xff\xff\xff\xff\xff\x02\0\0\0ab", 19);
  EXPECT_EQ(out, content + sha256_hex(std::as_bytes(std::span(content))));
}

TEST(BinaryStream, RoundTripAcrossBuffers) {
  std::vector<double> numbers(100000);  // 800,000 bytes: more than three buffers
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<double>(i) * -1.25;
  const auto put = [&](BinaryWriter& w) {
    w.u8(1);
    w.text(std::string(300000, 'q'));
    w.array<double>(numbers);
    w.u64(~std::uint64_t{0});
  };
  const std::string out = written(put);
  BinaryWriter counter;
  put(counter);
  counter.finish();
  EXPECT_EQ(counter.size(), out.size());

  BinaryReader in = reader(out);
  EXPECT_TRUE(in.boolean("flag"));
  EXPECT_EQ(in.text("text"), std::string(300000, 'q'));
  EXPECT_EQ(in.array<double>(numbers.size(), "numbers"), numbers);
  EXPECT_EQ(in.u64("last"), ~std::uint64_t{0});
  EXPECT_EQ(in.remaining(), 0U);
  in.verify_checksum();
}

TEST(BinaryStream, RefusesLengthsBeyondTheEndBeforeTakingMemory) {
  const std::string out = written([](BinaryWriter& w) { w.u32(0xffffffff); });
  EXPECT_THAT(message_of([&] { reader(out).text("name"); }), AllOf(HasSubstr("4294967295"), HasSubstr("name")));
  for (const std::uint64_t count : {std::uint64_t{1}, std::uint64_t{1} << 61U, ~std::uint64_t{0}}) {
    EXPECT_THAT(message_of([&] { reader(out).array<std::uint64_t>(count, "rows"); }), HasSubstr("found 4 bytes"));
  }
  EXPECT_THAT(message_of([&] { reader(out).boolean("flag"); }), HasSubstr("found 255"));
  EXPECT_THAT(message_of([&] { reader("short"); }), HasSubstr("found 5"));
}

TEST(BinaryStream, ChecksumCoversWhatWasNotRead) {
  const std::string good = written([](BinaryWriter& w) { w.text(std::string(600000, 'z')); });
  BinaryReader whole = reader(good);
  whole.verify_checksum();
  for (const std::size_t at : {std::size_t{0}, good.size() / 2, good.size() - 65, good.size() - 64, good.size() - 1}) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 4);
    EXPECT_THAT(message_of([&] {
                  BinaryReader in = reader(bad);
                  in.verify_checksum();
                }),
                HasSubstr("corrupt"))
        << at;
  }
}

TEST(BinaryStream, SourceThatEndsEarlyIsRefused) {
  const std::string good = written([](BinaryWriter& w) { w.text("0123456789"); });
  const std::string cut = good.substr(0, 8);
  BinaryReader in("file", good.size(), [rest = std::string_view(cut)](std::span<std::byte> out) mutable {
    const std::size_t n = std::min(out.size(), rest.size());
    std::memcpy(out.data(), rest.data(), n);
    rest.remove_prefix(n);
    return n;
  });
  EXPECT_THAT(message_of([&] { in.text("digits"); }), HasSubstr("shorter"));
}

}  // namespace
}  // namespace razorkv
