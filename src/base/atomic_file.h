// Files that are either the old one or the new one, never a piece of the new one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace razorkv {

/// Takes the place of `path` when it is complete: what is written goes to a temporary file beside it. The destructor
/// removes that file unless commit() returned; a killed process leaves it there, and `path` as it was.
class AtomicFile {
 public:
  /// The folder must exist. Throws FileError: no such folder, no permission, `path` is a folder or another non-file.
  explicit AtomicFile(const std::string& path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  /// Appends. Throws FileError.
  void write(std::span<const std::byte> bytes);
  /// Flushes to the disk and renames. Throws FileError.
  void commit();

 private:
  [[noreturn]] void fail(const char* what, int error) const;

  std::string path_;
  std::string temporary_;
  std::uint64_t written_ = 0;
  int descriptor_ = -1;
  bool committed_ = false;
};

/// Writes `content` to an AtomicFile. Creates missing folders. Throws FileError.
void write_file_atomically(const std::string& path, std::string_view content);

/// The whole file. Throws FileError when it cannot be read or is longer than `max_bytes`.
std::string read_whole_file(const std::string& path, std::size_t max_bytes);

}  // namespace razorkv
