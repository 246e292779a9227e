#include "model/gguf_parser.h"

#include <fmt/format.h>
#include <ggml.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <numeric>
#include <utility>

namespace razorkv {
namespace {

constexpr std::size_t kMaxNameBytes = GGML_MAX_NAME - 1;
constexpr std::uint64_t kMaxKeyBytes = 65535;
constexpr std::uint64_t kMaxAlignment = 65536;
constexpr std::uint64_t kDefaultAlignment = 32;
// The least that a key (length, one letter, type, one byte) and a tensor (length, one letter, count, one dimension,
// type, offset) take up: a larger claimed count cannot be true.
constexpr std::uint64_t kLeastKeyBytes = 8 + 1 + 4 + 1;
constexpr std::uint64_t kLeastTensorBytes = 8 + 1 + 4 + 8 + 4 + 8;

/// False where the product does not fit.
bool multiply(std::uint64_t a, std::uint64_t b, std::uint64_t& product) {
  return !__builtin_mul_overflow(a, b, &product);
}

/// A name as it may be shown: short, printable.
std::string shown(std::string_view name) {
  std::string text;
  for (const char letter : name.substr(0, 80)) text += letter >= ' ' && letter < 127 ? letter : '?';
  return name.size() > 80 ? text + "..." : text;
}

}  // namespace

std::size_t gguf_type_bytes(GgufType type) {
  switch (type) {
    case GgufType::u8:
    case GgufType::i8:
    case GgufType::boolean:
      return 1;
    case GgufType::u16:
    case GgufType::i16:
      return 2;
    case GgufType::u32:
    case GgufType::i32:
    case GgufType::f32:
      return 4;
    case GgufType::u64:
    case GgufType::i64:
    case GgufType::f64:
      return 8;
    case GgufType::string:
    case GgufType::array:
      break;
  }
  return 0;
}

GgufParser::GgufParser(std::span<const std::byte> bytes, std::string name) {
  file_.bytes_ = bytes;
  file_.name_ = std::move(name);
}

void GgufParser::need(std::uint64_t bytes, const std::string& what) const {
  if (remaining() < bytes) {
    file_.fail(
        fmt::format("cut short in {}: {} bytes expected at offset {}, {} left", what, bytes, position_, remaining()));
  }
}

template <typename T>
T GgufParser::read(const std::string& what) {
  need(sizeof(T), what);
  T value;
  std::memcpy(&value, file_.bytes_.data() + position_, sizeof(T));
  position_ += sizeof(T);
  return value;
}

std::string_view GgufParser::read_text(const std::string& what) {
  const auto length = read<std::uint64_t>("the length of " + what);
  need(length, what);
  const std::string_view text(reinterpret_cast<const char*>(file_.bytes_.data()) + position_, length);
  position_ += length;
  return text;
}

GgufType GgufParser::read_type(const std::string& what) {
  const auto number = read<std::uint32_t>(what);
  if (number > static_cast<std::uint32_t>(GgufType::f64)) {
    file_.fail(fmt::format("{} should be 0 to 12, found {}", what, number));
  }
  return static_cast<GgufType>(number);
}

GgufFile GgufParser::parse() {
  need(4, "the magic number");
  if (std::memcmp(file_.bytes_.data(), "GGUF", 4) != 0) file_.fail("not a GGUF file (it does not start with 'GGUF')");
  position_ = 4;
  file_.version_ = read<std::uint32_t>("the version");
  if (file_.version_ != 2 && file_.version_ != 3) {
    const bool swapped = file_.version_ != 0 && (file_.version_ & 0xffffU) == 0;
    file_.fail(fmt::format("GGUF version 2 or 3 expected, found {}{}", file_.version_,
                           swapped ? "; the file seems to be big-endian" : "; convert the model again"));
  }
  const auto tensor_count = read<std::uint64_t>("the tensor count");
  const auto value_count = read<std::uint64_t>("the key count");
  if (value_count > remaining() / kLeastKeyBytes) {
    file_.fail(fmt::format("{} keys claimed, but only {} bytes follow", value_count, remaining()));
  }
  if (tensor_count > remaining() / kLeastTensorBytes) {
    file_.fail(fmt::format("{} tensors claimed, but only {} bytes follow", tensor_count, remaining()));
  }
  read_values(value_count);
  read_tensors(tensor_count);
  place(alignment());
  return std::move(file_);
}

void GgufParser::read_values(std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; ++i) file_.values_.push_back(read_value(i));
  for (std::size_t i = 0; i < file_.values_.size(); ++i) {
    const std::string& key = file_.values_[i].key;
    if (!file_.value_index_.emplace(key, i).second) file_.fail("key '" + shown(key) + "' occurs twice");
  }
}

GgufValue GgufParser::read_value(std::uint64_t index) {
  const std::string_view key = read_text(fmt::format("key {}", index));
  if (key.empty() || key.size() > kMaxKeyBytes) {
    file_.fail(fmt::format("the name of key {} should have 1 to {} bytes, found {}", index, kMaxKeyBytes, key.size()));
  }
  GgufValue value;
  value.key = std::string(key);
  const std::string what = "the value of key '" + shown(key) + "'";
  value.type = read_type("the type of key '" + shown(key) + "'");
  value.element = value.type;
  if (value.type == GgufType::array) {
    value.element = read_type("the element type of key '" + shown(key) + "'");
    if (value.element == GgufType::array) file_.fail(what + " is an array of arrays, which is not supported");
    value.count = read<std::uint64_t>("the array length of key '" + shown(key) + "'");
  }
  value.offset = position_;
  skip_elements(value);
  return value;
}

void GgufParser::skip_elements(const GgufValue& value) {
  const std::string what = "the value of key '" + shown(value.key) + "'";
  if (value.element == GgufType::string) {
    if (value.count > remaining() / 8) {
      file_.fail(fmt::format("{} claims {} strings, but only {} bytes follow", what, value.count, remaining()));
    }
    for (std::uint64_t i = 0; i < value.count; ++i) read_text(what);
    return;
  }
  std::uint64_t bytes = 0;
  if (!multiply(value.count, gguf_type_bytes(value.element), bytes) || bytes > remaining()) {
    file_.fail(fmt::format("cut short in {}: {} elements of type {} expected, {} bytes left", what, value.count,
                           gguf_type_name(value.element), remaining()));
  }
  if (value.element == GgufType::boolean) {
    const auto flags = file_.bytes_.subspan(position_, bytes);
    if (std::any_of(flags.begin(), flags.end(), [](std::byte flag) { return flag > std::byte{1}; })) {
      file_.fail(what + " should be 0 or 1 (bool), found another byte");
    }
  }
  position_ += bytes;
}

std::uint64_t GgufParser::alignment() const {
  const GgufValue* value = file_.find("general.alignment");
  if (value == nullptr) return kDefaultAlignment;
  if (value->type != GgufType::u32) {
    file_.fail(fmt::format("key 'general.alignment' should be u32, found {}", gguf_type_name(value->type)));
  }
  const std::uint64_t found = file_.find_unsigned("general.alignment").value_or(0);
  if (!std::has_single_bit(found) || found > kMaxAlignment) {
    file_.fail(fmt::format("general.alignment should be a power of two up to {}, found {}", kMaxAlignment, found));
  }
  return found;
}

void GgufParser::read_tensors(std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; ++i) file_.tensors_.push_back(read_tensor(i));
  for (std::size_t i = 0; i < file_.tensors_.size(); ++i) {
    const std::string& name = file_.tensors_[i].name;
    if (!file_.tensor_index_.emplace(name, i).second) file_.fail("tensor '" + shown(name) + "' occurs twice");
  }
}

GgufTensor GgufParser::read_tensor(std::uint64_t index) {
  const std::string_view name = read_text(fmt::format("the name of tensor {}", index));
  if (name.empty() || name.size() > kMaxNameBytes) {
    file_.fail(
        fmt::format("the name of tensor {} should have 1 to {} bytes, found {}", index, kMaxNameBytes, name.size()));
  }
  GgufTensor tensor;
  tensor.name = std::string(name);
  const std::string what = "tensor '" + shown(name) + "'";
  tensor.dimensions = read<std::uint32_t>("the dimension count of " + what);
  if (tensor.dimensions < 1 || tensor.dimensions > 4) {
    file_.fail(fmt::format("{} should have 1 to 4 dimensions, found {}", what, tensor.dimensions));
  }
  for (std::size_t d = 0; d < tensor.dimensions; ++d) {
    const auto size = read<std::uint64_t>("the dimensions of " + what);
    if (size == 0 || size > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      file_.fail(fmt::format("dimension {} of {} should be at least 1 and below 2^63, found {}", d, what, size));
    }
    tensor.shape[d] = static_cast<std::int64_t>(size);
  }
  measure(tensor, read<std::uint32_t>("the type of " + what));
  relative_offsets_.push_back(read<std::uint64_t>("the offset of " + what));
  return tensor;
}

void GgufParser::measure(GgufTensor& tensor, std::uint64_t type) const {
  const std::string what = "tensor '" + shown(tensor.name) + "'";
  const bool known = type < GGML_TYPE_COUNT && ggml_blck_size(static_cast<ggml_type>(type)) > 0 &&
                     ggml_type_size(static_cast<ggml_type>(type)) > 0;
  if (!known) file_.fail(fmt::format("{} has type {}, which this ggml does not know", what, type));
  tensor.type = static_cast<std::uint32_t>(type);
  const auto ggml = static_cast<ggml_type>(type);
  const auto block = static_cast<std::uint64_t>(ggml_blck_size(ggml));
  const auto row = static_cast<std::uint64_t>(tensor.shape[0]);
  if (row % block != 0) {
    file_.fail(fmt::format("rows of {} ({}) should be a multiple of {} elements, found {}", what, ggml_type_name(ggml),
                           block, row));
  }
  std::uint64_t elements = 1;
  std::uint64_t bytes = 0;
  bool fits = true;
  for (const std::int64_t size : tensor.shape)
    fits = fits && multiply(elements, static_cast<std::uint64_t>(size), elements);
  fits = fits && multiply(elements / block, ggml_type_size(ggml), bytes);
  if (!fits || elements > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()) ||
      bytes > file_.bytes_.size()) {
    file_.fail(fmt::format("{} of shape {} is larger than the file of {} bytes", what, shape_text(tensor.shape),
                           file_.bytes_.size()));
  }
  tensor.bytes = bytes;
}

void GgufParser::place(std::uint64_t alignment) {
  const std::uint64_t size = file_.bytes_.size();
  const std::uint64_t data_start = (position_ + alignment - 1) / alignment * alignment;
  std::vector<std::size_t> order(file_.tensors_.size());
  for (std::size_t i = 0; i < file_.tensors_.size(); ++i) {
    GgufTensor& tensor = file_.tensors_[i];
    const std::uint64_t relative = relative_offsets_[i];
    if (relative % alignment != 0) {
      file_.fail(fmt::format("the offset of tensor '{}' should be a multiple of {}, found {}", shown(tensor.name),
                             alignment, relative));
    }
    std::uint64_t end = 0;
    if (__builtin_add_overflow(data_start, relative, &end) || __builtin_add_overflow(end, tensor.bytes, &end) ||
        end > size) {
      file_.fail(fmt::format(
          "tensor '{}' ({} bytes at offset {} of the data) ends behind the end of the file ({} bytes); the file is "
          "cut short or corrupt: fetch it again",
          shown(tensor.name), tensor.bytes, relative, size));
    }
    tensor.offset = data_start + relative;
    order[i] = i;
  }
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return file_.tensors_[a].offset < file_.tensors_[b].offset; });
  for (std::size_t i = 1; i < order.size(); ++i) {
    const GgufTensor& before = file_.tensors_[order[i - 1]];
    const GgufTensor& after = file_.tensors_[order[i]];
    if (before.offset + before.bytes > after.offset) {
      file_.fail(fmt::format("tensors '{}' and '{}' overlap", shown(before.name), shown(after.name)));
    }
  }
}

}  // namespace razorkv
