// The checking half of the GGUF reader; gguf_file.cpp holds the getters.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/gguf_file.h"

namespace razorkv {

/// Bytes of one element of a metadata value; 0 for strings and arrays.
std::size_t gguf_type_bytes(GgufType type);

/// Walks the header once, from front to back.
class GgufParser {
 public:
  GgufParser(std::span<const std::byte> bytes, std::string name);
  GgufFile parse();

 private:
  std::uint64_t remaining() const { return file_.bytes_.size() - position_; }
  void need(std::uint64_t bytes, const std::string& what) const;
  template <typename T>
  T read(const std::string& what);
  std::string_view read_text(const std::string& what);
  GgufType read_type(const std::string& what);

  void read_values(std::uint64_t count);
  GgufValue read_value(std::uint64_t index);
  void skip_elements(const GgufValue& value);
  std::uint64_t alignment() const;
  void read_tensors(std::uint64_t count);
  GgufTensor read_tensor(std::uint64_t index);
  void measure(GgufTensor& tensor, std::uint64_t type) const;
  void place(std::uint64_t alignment);

  GgufFile file_;
  std::size_t position_ = 0;
  std::vector<std::uint64_t> relative_offsets_;  ///< of the tensors, from the start of the data section
};

}  // namespace razorkv
