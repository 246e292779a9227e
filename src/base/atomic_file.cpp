#include "base/atomic_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

#include "razorkv/error.h"

namespace razorkv {
namespace {

std::filesystem::path folder_of(const std::string& path) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  return folder.empty() ? "." : folder;
}

/// Makes the rename itself durable. Some file systems refuse to flush a folder; the file is whole all the same.
void flush_folder(const std::filesystem::path& folder) noexcept {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  ::fsync(descriptor);
  ::close(descriptor);
}

}  // namespace

AtomicFile::AtomicFile(const std::string& path) : path_(path) {
  static std::atomic<std::uint64_t> files{0};  // two threads may write one path
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (std::filesystem::is_directory(status)) throw FileError(path + ": expected the name of a file, found a folder");
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
    throw FileError(path + ": expected a regular file or a new name, found a device or another special file");
  }
  temporary_ = fmt::format("{}.{}.{}.tmp", path, ::getpid(), files.fetch_add(1));
  descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (descriptor_ < 0) fail("create a temporary file beside it", errno);
}

AtomicFile::~AtomicFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (!committed_) ::unlink(temporary_.c_str());
}

void AtomicFile::fail(const char* what, int error) const {
  const bool replaces = ::access(path_.c_str(), F_OK) == 0;
  throw FileError(fmt::format("{}: cannot {} (after {} bytes): {}{}", path_, what, written_, std::strerror(error),
                              replaces ? "; the file is as it was before" : ""));
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail("write", errno);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
    written_ += static_cast<std::uint64_t>(written);
  }
}

void AtomicFile::commit() {
  if (::fsync(descriptor_) != 0) fail("flush to the disk", errno);
  if (::close(std::exchange(descriptor_, -1)) != 0) fail("close", errno);
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail("replace", errno);
  committed_ = true;
  flush_folder(folder_of(path_));
}

void write_file_atomically(const std::string& path, std::string_view content) {
  const std::filesystem::path folder = folder_of(path);
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw FileError(fmt::format("{}: cannot create the folder: {}", folder.string(), error.message()));
  AtomicFile file(path);
  file.write(std::as_bytes(std::span(content)));
  file.commit();
}

std::string read_whole_file(const std::string& path, std::size_t max_bytes) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) throw FileError(path + ": expected a file, found a folder");
  const auto size = std::filesystem::file_size(path, error);
  if (error) throw FileError(fmt::format("{}: cannot read: {}", path, error.message()));
  if (size > max_bytes) {
    throw FileError(fmt::format("{}: expected at most {} bytes, found {}", path, max_bytes, size));
  }
  std::ifstream stream(path, std::ios::binary);
  std::string content{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  if (!stream || content.size() != size) throw FileError(path + ": cannot read the whole file");
  return content;
}

}  // namespace razorkv
