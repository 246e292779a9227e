// The GGUF reader on well-formed and on broken bytes.
#include "model/gguf_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "razorkv/error.h"

namespace razorkv {
namespace {

using testing::HasSubstr;

/// Writes GGUF bytes field by field, so that every field can be wrong.
class Bytes {
 public:
  template <typename T>
  Bytes& put(T value) {
    const auto* first = reinterpret_cast<const std::byte*>(&value);
    bytes_.insert(bytes_.end(), first, first + sizeof(T));
    return *this;
  }
  Bytes& text(const std::string& value) {
    put<std::uint64_t>(value.size());
    return raw(value);
  }
  Bytes& raw(const std::string& value) {
    const auto* first = reinterpret_cast<const std::byte*>(value.data());
    bytes_.insert(bytes_.end(), first, first + value.size());
    return *this;
  }
  Bytes& header(std::uint64_t tensors, std::uint64_t keys, std::uint32_t version = 3) {
    return raw("GGUF").put(version).put(tensors).put(keys);
  }
  Bytes& key(const std::string& name, GgufType type) { return text(name).put(static_cast<std::uint32_t>(type)); }
  Bytes& tensor(const std::string& name, const std::vector<std::uint64_t>& shape, std::uint32_t type,
                std::uint64_t offset) {
    text(name).put(static_cast<std::uint32_t>(shape.size()));
    for (const std::uint64_t size : shape) put(size);
    return put(type).put(offset);
  }
  Bytes& data(std::size_t bytes, std::size_t alignment = 32) {
    while (bytes_.size() % alignment != 0) put<std::uint8_t>(0);
    bytes_.resize(bytes_.size() + bytes, std::byte{7});
    return *this;
  }

  const std::vector<std::byte>& get() const { return bytes_; }
  GgufFile parse() const { return GgufFile::parse(bytes_, "test.gguf"); }
  std::string error() const {
    try {
      parse();
    } catch (const FileError& error) {
      return error.what();
    }
    return "no error";
  }

 private:
  std::vector<std::byte> bytes_;
};

constexpr std::uint32_t kF32 = 0;
constexpr std::uint32_t kQ4_0 = 2;

TEST(GgufFile, ReadsEveryType) {
  Bytes bytes;
  bytes.header(1, 14);
  bytes.key("u8", GgufType::u8).put<std::uint8_t>(200);
  bytes.key("i8", GgufType::i8).put<std::int8_t>(-3);
  bytes.key("u16", GgufType::u16).put<std::uint16_t>(60000);
  bytes.key("i16", GgufType::i16).put<std::int16_t>(300);
  bytes.key("u32", GgufType::u32).put<std::uint32_t>(4000000000U);
  bytes.key("i32", GgufType::i32).put<std::int32_t>(70000);
  bytes.key("f32", GgufType::f32).put(1.5F);
  bytes.key("yes", GgufType::boolean).put<std::uint8_t>(1);
  bytes.key("name", GgufType::string).text("a name");
  bytes.key("u64", GgufType::u64).put(std::numeric_limits<std::uint64_t>::max());
  bytes.key("i64", GgufType::i64).put<std::int64_t>(5);
  bytes.key("f64", GgufType::f64).put(2.5);
  bytes.key("list", GgufType::array).put(static_cast<std::uint32_t>(GgufType::i32)).put<std::uint64_t>(2);
  bytes.put<std::int32_t>(11).put<std::int32_t>(12);
  bytes.key("words", GgufType::array).put(static_cast<std::uint32_t>(GgufType::string)).put<std::uint64_t>(2);
  bytes.text("one").text("two");
  bytes.tensor("weight", {3, 2}, kF32, 0).data(24);
  const GgufFile gguf = bytes.parse();
  EXPECT_EQ(gguf.require_unsigned("u8"), 200U);
  EXPECT_EQ(gguf.require_unsigned("u16"), 60000U);
  EXPECT_EQ(gguf.require_unsigned("i16"), 300U);
  EXPECT_EQ(gguf.require_unsigned("u32"), 4000000000U);
  EXPECT_EQ(gguf.require_unsigned("i32"), 70000U);
  EXPECT_EQ(gguf.require_unsigned("u64"), std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(gguf.require_unsigned("i64"), 5U);
  EXPECT_EQ(gguf.require_float("f32"), 1.5F);
  EXPECT_EQ(gguf.require_float("f64"), 2.5F);
  EXPECT_EQ(gguf.find_bool("yes"), true);
  EXPECT_EQ(gguf.require_string("name"), "a name");
  EXPECT_EQ(gguf.find_unsigned_array("list"), (std::vector<std::uint64_t>{11, 12}));
  EXPECT_EQ(gguf.find("words")->count, 2U);
  EXPECT_EQ(gguf.find_unsigned("absent"), std::nullopt);
  EXPECT_THROW(gguf.require_unsigned("i8"), FileError);
  const GgufTensor* tensor = gguf.find_tensor("weight");
  ASSERT_NE(tensor, nullptr);
  EXPECT_EQ(tensor->bytes, 24U);
  EXPECT_EQ(tensor->offset % 32, 0U);
  EXPECT_EQ(gguf.data(*tensor)[0], std::byte{7});
}

TEST(GgufFile, GettersNameWhatWasExpectedAndFound) {
  Bytes bytes;
  bytes.header(0, 3);
  bytes.key("count", GgufType::string).text("7");
  bytes.key("scale", GgufType::u32).put<std::uint32_t>(1);
  bytes.key("list", GgufType::array).put(static_cast<std::uint32_t>(GgufType::f32)).put<std::uint64_t>(1).put(1.0F);
  const GgufFile gguf = bytes.parse();
  const auto message = [](const std::function<void()>& call) -> std::string {
    try {
      call();
    } catch (const FileError& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_EQ(message([&] { gguf.require_unsigned("count"); }),
            "test.gguf: key 'count' should be an integer, found string");
  EXPECT_EQ(message([&] { gguf.require_float("scale"); }), "test.gguf: key 'scale' should be f32, found u32");
  EXPECT_EQ(message([&] { gguf.find_bool("scale"); }), "test.gguf: key 'scale' should be bool, found u32");
  EXPECT_EQ(message([&] { gguf.find_string("list"); }), "test.gguf: key 'list' should be a string, found array");
  EXPECT_EQ(message([&] { gguf.find_unsigned_array("count"); }),
            "test.gguf: key 'count' should be an array, found string");
  EXPECT_THAT(message([&] { gguf.find_unsigned_array("list"); }),
              HasSubstr("array of integers, found an array of f32"));
  EXPECT_EQ(message([&] { gguf.require_string("gone"); }), "test.gguf: key 'gone' is missing");
}

TEST(GgufFile, RefusesWhatIsNoGguf) {
  EXPECT_THAT(Bytes().error(), HasSubstr("cut short in the magic number"));
  EXPECT_THAT(Bytes().raw("GG").error(), HasSubstr("cut short"));
  EXPECT_THAT(Bytes().raw("PK\3\4 zip archive, not a model").error(), HasSubstr("not a GGUF file"));
  EXPECT_THAT(Bytes().header(0, 0, 1).error(), HasSubstr("version 2 or 3 expected, found 1"));
  EXPECT_THAT(Bytes().header(0, 0, 4).error(), HasSubstr("found 4"));
  EXPECT_THAT(Bytes().header(0, 0, 3U << 24U).error(), HasSubstr("big-endian"));
  EXPECT_EQ(Bytes().header(0, 0).error(), "no error");
  EXPECT_EQ(Bytes().header(0, 0, 2).error(), "no error");
}

TEST(GgufFile, RefusesCountsThatTheFileCannotHold) {
  for (const std::uint64_t count :
       {std::uint64_t{1}, std::uint64_t{1} << 32, std::uint64_t{1} << 63, std::numeric_limits<std::uint64_t>::max()}) {
    EXPECT_THAT(Bytes().header(count, 0).error(), HasSubstr("tensors claimed"));
    EXPECT_THAT(Bytes().header(0, count).error(), HasSubstr("keys claimed"));
    Bytes array;
    array.header(0, 1).key("k", GgufType::array).put(static_cast<std::uint32_t>(GgufType::u64)).put(count);
    EXPECT_THAT(array.error(), HasSubstr("key 'k'")) << count;
    Bytes strings;
    strings.header(0, 1).key("k", GgufType::array).put(static_cast<std::uint32_t>(GgufType::string)).put(count);
    EXPECT_THAT(strings.error(), HasSubstr("key 'k'")) << count;
    Bytes text;
    text.header(0, 1).key("k", GgufType::string).put(count);
    EXPECT_THAT(text.error(), HasSubstr("key 'k'")) << count;
  }
}

TEST(GgufFile, RefusesBadKeys) {
  EXPECT_THAT(Bytes().header(0, 1).key("", GgufType::u64).put<std::uint64_t>(0).error(), HasSubstr("name of key 0"));
  EXPECT_THAT(Bytes().header(0, 1).text("k").put<std::uint32_t>(13).put<std::uint64_t>(0).error(),
              HasSubstr("type of key 'k' should be 0 to 12, found 13"));
  Bytes nested;
  nested.header(0, 1).key("k", GgufType::array).put(static_cast<std::uint32_t>(GgufType::array));
  EXPECT_THAT(nested.put<std::uint64_t>(0).error(), HasSubstr("array of arrays"));
  EXPECT_THAT(Bytes().header(0, 1).key("k", GgufType::boolean).put<std::uint8_t>(2).error(), HasSubstr("0 or 1"));
  Bytes twice;
  twice.header(0, 2).key("k", GgufType::u8).put<std::uint8_t>(1).key("k", GgufType::u8).put<std::uint8_t>(1);
  EXPECT_THAT(twice.error(), HasSubstr("'k' occurs twice"));
}

TEST(GgufFile, ShowsNamesWithoutControlBytes) {
  const std::string message = Bytes().header(0, 1).text("a\x1b[31m\nb").put<std::uint32_t>(99).put(0.0).error();
  EXPECT_THAT(message, HasSubstr("a?[31m?b"));
}

TEST(GgufFile, RefusesBadAlignment) {
  const auto with = [](std::uint32_t alignment) {
    return Bytes().header(0, 1).key("general.alignment", GgufType::u32).put(alignment).error();
  };
  for (const std::uint32_t bad : {0U, 3U, 48U, 1U << 30U, 0xffffffffU}) {
    EXPECT_THAT(with(bad), HasSubstr("power of two up to 65536, found " + std::to_string(bad)));
  }
  EXPECT_EQ(with(8), "no error");
  EXPECT_EQ(with(4096), "no error");
  EXPECT_THAT(Bytes().header(0, 1).key("general.alignment", GgufType::string).text("32").error(),
              HasSubstr("should be u32, found string"));
}

std::string tensor_error(const std::vector<std::uint64_t>& shape, std::uint32_t type = kF32, std::uint64_t offset = 0) {
  return Bytes().header(1, 0).tensor("t", shape, type, offset).data(4096).error();
}

TEST(GgufFile, RefusesBadShapes) {
  EXPECT_THAT(tensor_error({}), HasSubstr("1 to 4 dimensions, found 0"));
  EXPECT_THAT(tensor_error({1, 1, 1, 1, 1}), HasSubstr("1 to 4 dimensions, found 5"));
  EXPECT_THAT(tensor_error({0}), HasSubstr("dimension 0 of tensor 't'"));
  EXPECT_THAT(tensor_error({4, 0}), HasSubstr("dimension 1 of tensor 't'"));
  EXPECT_THAT(tensor_error({std::uint64_t{1} << 63}), HasSubstr("below 2^63"));
  EXPECT_THAT(tensor_error({33}, kQ4_0), HasSubstr("multiple of 32 elements, found 33"));
  EXPECT_THAT(tensor_error({4}, 999), HasSubstr("type 999"));
  EXPECT_THAT(tensor_error({4}, 4), HasSubstr("type 4"));  // a type that ggml removed
  EXPECT_EQ(tensor_error({64}, kQ4_0), "no error");
}

TEST(GgufFile, RefusesSizesThatWrap) {
  const std::uint64_t big = std::uint64_t{1} << 32;
  EXPECT_THAT(tensor_error({big, big / 2}), HasSubstr("larger than the file"));  // 2^63
  EXPECT_THAT(tensor_error({big, big}), HasSubstr("larger than the file"));      // 2^64 wraps to 0
  EXPECT_THAT(tensor_error({big, big, 1, 2}), HasSubstr("larger than the file"));
  EXPECT_THAT(tensor_error({big + 1, big}), HasSubstr("larger than the file"));                  // wraps to 2^32
  EXPECT_THAT(tensor_error({(std::uint64_t{1} << 62) + 1}), HasSubstr("larger than the file"));  // times 4 wraps to 4
  EXPECT_THAT(tensor_error({1025}), HasSubstr("file"));
}

TEST(GgufFile, RefusesBadPlaces) {
  EXPECT_THAT(tensor_error({4}, kF32, 16), HasSubstr("multiple of 32, found 16"));
  EXPECT_THAT(tensor_error({4}, kF32, 4096), HasSubstr("tensor 't' (16 bytes at offset 4096 of the data) ends behind"));
  EXPECT_THAT(tensor_error({4}, kF32, 0xffffffffffffffe0U), HasSubstr("ends behind"));
  EXPECT_EQ(tensor_error({4}, kF32, 4064), "no error");
  const auto two = [](std::uint64_t second) {
    return Bytes().header(2, 0).tensor("a", {16}, kF32, 0).tensor("b", {16}, kF32, second).data(4096).error();
  };
  EXPECT_THAT(two(32), HasSubstr("tensors 'a' and 'b' overlap"));
  EXPECT_THAT(two(0), HasSubstr("overlap"));
  EXPECT_EQ(two(64), "no error");
  Bytes same;
  same.header(2, 0).tensor("a", {16}, kF32, 0).tensor("a", {16}, kF32, 64).data(4096);
  EXPECT_THAT(same.error(), HasSubstr("'a' occurs twice"));
  EXPECT_THAT(Bytes().header(1, 0).tensor(std::string(64, 'n'), {4}, kF32, 0).data(64).error(),
              HasSubstr("1 to 63 bytes, found 64"));
}

}  // namespace
}  // namespace razorkv
