// Ranges and key names that the readers of metadata share.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "model/gguf_file.h"

namespace razorkv {

/// Reads keys "{architecture}.{name}" with range checks. Throws FileError.
class ConfigKeys {
 public:
  ConfigKeys(const GgufFile& gguf, std::string_view architecture)
      : gguf_(gguf), prefix_(std::string(architecture) + ".") {}

  std::string full(std::string_view name) const { return prefix_ + std::string(name); }
  const GgufFile& gguf() const { return gguf_; }
  bool has(std::string_view name) const { return gguf_.find(full(name)) != nullptr; }

  std::int64_t count(std::string_view name, std::int64_t least, std::int64_t most) const;
  std::optional<std::int64_t> find_count(std::string_view name, std::int64_t least, std::int64_t most) const;
  /// Finite and within [least, most].
  std::optional<float> find_real(std::string_view name, float least, float most) const;
  void check_count(std::string_view name, std::uint64_t found, std::int64_t least, std::int64_t most) const;

 private:
  const GgufFile& gguf_;
  std::string prefix_;
};

}  // namespace razorkv
