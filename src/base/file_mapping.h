// A whole file mapped read-only.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace razorkv {

class FileMapping {
 public:
  /// Throws FileError: missing, not readable, a directory or another non-file, empty.
  explicit FileMapping(const std::string& path);
  ~FileMapping();
  FileMapping(FileMapping&& other) noexcept;
  FileMapping& operator=(FileMapping&& other) noexcept;
  FileMapping(const FileMapping&) = delete;
  FileMapping& operator=(const FileMapping&) = delete;

  /// Starts at a page border.
  std::span<const std::byte> bytes() const { return {data_, size_}; }
  /// Tells the system that these bytes of the mapping will not be read again soon, so that it may drop their pages.
  void forget(std::span<const std::byte> part) const noexcept;

 private:
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace razorkv
