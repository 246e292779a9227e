#include "model/gguf_file.h"

#include <fmt/format.h>

#include <cstring>
#include <utility>

#include "model/gguf_parser.h"
#include "razorkv/error.h"

namespace razorkv {
namespace {

constexpr std::array<const char*, 13> kTypeNames = {"u8",   "i8",     "u16",   "i16", "u32", "i32", "f32",
                                                    "bool", "string", "array", "u64", "i64", "f64"};

bool is_integer(GgufType type) {
  return type != GgufType::f32 && type != GgufType::f64 && type != GgufType::boolean && type != GgufType::string &&
         type != GgufType::array;
}

template <typename T>
T load(std::span<const std::byte> bytes, std::size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

std::int64_t signed_at(std::span<const std::byte> bytes, GgufType type, std::size_t offset) {
  switch (type) {
    case GgufType::i8:
      return load<std::int8_t>(bytes, offset);
    case GgufType::i16:
      return load<std::int16_t>(bytes, offset);
    case GgufType::i32:
      return load<std::int32_t>(bytes, offset);
    default:
      return load<std::int64_t>(bytes, offset);
  }
}

}  // namespace

const char* gguf_type_name(GgufType type) { return kTypeNames[static_cast<std::size_t>(type)]; }

std::string shape_text(std::span<const std::int64_t> shape) {
  while (shape.size() > 1 && shape.back() == 1) shape = shape.first(shape.size() - 1);
  return fmt::format("[{}]", fmt::join(shape.begin(), shape.end(), ", "));
}

GgufFile GgufFile::parse(std::span<const std::byte> bytes, std::string name) {
  return GgufParser(bytes, std::move(name)).parse();
}

const GgufValue* GgufFile::find(std::string_view key) const {
  const auto found = value_index_.find(key);
  return found == value_index_.end() ? nullptr : &values_[found->second];
}

const GgufTensor* GgufFile::find_tensor(std::string_view name) const {
  const auto found = tensor_index_.find(name);
  return found == tensor_index_.end() ? nullptr : &tensors_[found->second];
}

void GgufFile::fail(const std::string& text) const { throw FileError(name_ + ": " + text); }

void GgufFile::missing(std::string_view key) const { fail(fmt::format("key '{}' is missing", key)); }

const GgufValue* GgufFile::find_typed(std::string_view key, std::string_view expected,
                                      bool (*accepts)(GgufType)) const {
  const GgufValue* value = find(key);
  if (value != nullptr && !accepts(value->type)) {
    fail(fmt::format("key '{}' should be {}, found {}", key, expected, gguf_type_name(value->type)));
  }
  return value;
}

std::uint64_t GgufFile::unsigned_at(const GgufValue& value, std::uint64_t index) const {
  const std::size_t offset = value.offset + index * gguf_type_bytes(value.element);
  switch (value.element) {
    case GgufType::u8:
    case GgufType::boolean:
      return load<std::uint8_t>(bytes_, offset);
    case GgufType::u16:
      return load<std::uint16_t>(bytes_, offset);
    case GgufType::u32:
      return load<std::uint32_t>(bytes_, offset);
    case GgufType::u64:
      return load<std::uint64_t>(bytes_, offset);
    default:
      break;
  }
  const std::int64_t number = signed_at(bytes_, value.element, offset);
  if (number < 0) fail(fmt::format("key '{}' should not be negative, found {}", value.key, number));
  return static_cast<std::uint64_t>(number);
}

std::optional<std::uint64_t> GgufFile::find_unsigned(std::string_view key) const {
  const GgufValue* value = find_typed(key, "an integer", is_integer);
  if (value == nullptr) return std::nullopt;
  return unsigned_at(*value, 0);
}

std::optional<float> GgufFile::find_float(std::string_view key) const {
  const GgufValue* value =
      find_typed(key, "f32", [](GgufType type) { return type == GgufType::f32 || type == GgufType::f64; });
  if (value == nullptr) return std::nullopt;
  if (value->type == GgufType::f32) return load<float>(bytes_, value->offset);
  return static_cast<float>(load<double>(bytes_, value->offset));
}

std::optional<bool> GgufFile::find_bool(std::string_view key) const {
  const GgufValue* value = find_typed(key, "bool", [](GgufType type) { return type == GgufType::boolean; });
  if (value == nullptr) return std::nullopt;
  return bytes_[value->offset] != std::byte{0};
}

std::optional<std::string_view> GgufFile::find_string(std::string_view key) const {
  const GgufValue* value = find_typed(key, "a string", [](GgufType type) { return type == GgufType::string; });
  if (value == nullptr) return std::nullopt;
  const auto length = load<std::uint64_t>(bytes_, value->offset);
  return std::string_view(reinterpret_cast<const char*>(bytes_.data()) + value->offset + 8, length);
}

std::optional<std::vector<std::uint64_t>> GgufFile::find_unsigned_array(std::string_view key) const {
  const GgufValue* value = find_typed(key, "an array", [](GgufType type) { return type == GgufType::array; });
  if (value == nullptr) return std::nullopt;
  if (!is_integer(value->element) && value->element != GgufType::boolean) {
    fail(fmt::format("key '{}' should be an array of integers, found an array of {}", key,
                     gguf_type_name(value->element)));
  }
  std::vector<std::uint64_t> elements;
  for (std::uint64_t i = 0; i < value->count; ++i) elements.push_back(unsigned_at(*value, i));
  return elements;
}

std::uint64_t GgufFile::require_unsigned(std::string_view key) const {
  const auto value = find_unsigned(key);
  if (!value) missing(key);
  return *value;
}

float GgufFile::require_float(std::string_view key) const {
  const auto value = find_float(key);
  if (!value) missing(key);
  return *value;
}

std::string_view GgufFile::require_string(std::string_view key) const {
  const auto value = find_string(key);
  if (!value) missing(key);
  return *value;
}

}  // namespace razorkv
