// Strict reader of GGUF v2 and v3 over bytes that somebody else keeps (a mapping, or a fuzzer's input).
//
// Everything is checked against the bytes that are there before it is believed: counts, lengths, types, dimensions,
// alignment, tensor ranges. Nothing is allocated in proportion to a number that the file merely claims.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace razorkv {

/// Types of metadata values, numbered as in the file.
enum class GgufType : std::uint32_t { u8, i8, u16, i16, u32, i32, f32, boolean, string, array, u64, i64, f64 };

const char* gguf_type_name(GgufType type);

struct GgufValue {
  std::string key;
  GgufType type = GgufType::u8;
  GgufType element = GgufType::u8;  ///< type of the elements; equals `type` where this is no array
  std::uint64_t count = 1;          ///< elements
  std::size_t offset = 0;           ///< of the first element in the file, bytes
};

struct GgufTensor {
  std::string name;
  std::uint32_t type = 0;                            ///< a ggml_type that ggml knows
  std::uint32_t dimensions = 0;                      ///< 1 to 4
  std::array<std::int64_t, 4> shape = {1, 1, 1, 1};  ///< ggml order: fastest dimension first
  std::size_t offset = 0;                            ///< from the start of the file, bytes
  std::size_t bytes = 0;
};

/// "[64, 128]", fastest dimension first.
std::string shape_text(std::span<const std::int64_t> shape);

class GgufFile {
 public:
  /// `bytes` must outlive the object; `name` stands for the file in messages. Throws FileError.
  static GgufFile parse(std::span<const std::byte> bytes, std::string name);
  GgufFile(GgufFile&&) = default;  // the indices point into the vectors, so a copy would dangle
  GgufFile& operator=(GgufFile&&) = default;
  GgufFile(const GgufFile&) = delete;
  GgufFile& operator=(const GgufFile&) = delete;

  const std::string& name() const { return name_; }
  std::uint32_t version() const { return version_; }
  std::span<const std::byte> bytes() const { return bytes_; }
  std::span<const std::byte> data(const GgufTensor& tensor) const {
    return bytes_.subspan(tensor.offset, tensor.bytes);
  }

  const std::vector<GgufValue>& values() const { return values_; }
  const std::vector<GgufTensor>& tensors() const { return tensors_; }
  const GgufValue* find(std::string_view key) const;
  const GgufTensor* find_tensor(std::string_view name) const;

  /// Empty where the key is absent. Throw FileError, naming what was expected and found, where it has another type
  /// (integers of any width are taken where they are not negative; f64 is taken for f32).
  std::optional<std::uint64_t> find_unsigned(std::string_view key) const;
  std::optional<float> find_float(std::string_view key) const;
  std::optional<bool> find_bool(std::string_view key) const;
  std::optional<std::string_view> find_string(std::string_view key) const;
  /// Elements of an array of integers or booleans.
  std::optional<std::vector<std::uint64_t>> find_unsigned_array(std::string_view key) const;

  /// The same for a key that must be there.
  std::uint64_t require_unsigned(std::string_view key) const;
  float require_float(std::string_view key) const;
  std::string_view require_string(std::string_view key) const;

  /// For messages about this file.
  [[noreturn]] void fail(const std::string& text) const;

 private:
  friend class GgufParser;
  GgufFile() = default;
  const GgufValue* find_typed(std::string_view key, std::string_view expected, bool (*accepts)(GgufType)) const;
  std::uint64_t unsigned_at(const GgufValue& value, std::uint64_t index) const;
  [[noreturn]] void missing(std::string_view key) const;

  std::string name_;
  std::span<const std::byte> bytes_;
  std::uint32_t version_ = 0;
  std::vector<GgufValue> values_;
  std::vector<GgufTensor> tensors_;
  std::unordered_map<std::string_view, std::size_t> value_index_;
  std::unordered_map<std::string_view, std::size_t> tensor_index_;
};

}  // namespace razorkv
