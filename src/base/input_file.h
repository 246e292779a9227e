// A file that is read once from its start.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace razorkv {

class InputFile {
 public:
  /// Throws FileError: missing, not readable, a folder or another non-file.
  explicit InputFile(const std::string& path);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  /// Bytes when it was opened.
  std::uint64_t size() const noexcept { return size_; }
  /// Reads up to out.size() bytes and returns how many; 0 at the end. Throws FileError.
  std::size_t read(std::span<std::byte> out);

 private:
  std::string path_;
  std::uint64_t size_ = 0;
  int descriptor_ = -1;
};

}  // namespace razorkv
