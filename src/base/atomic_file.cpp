#include "base/atomic_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

#include "razorkv/error.h"

namespace razorkv {
namespace {

[[noreturn]] void fail(const std::string& path, const char* what, int error) {
  throw FileError(fmt::format("{}: cannot {}: {}", path, what, std::strerror(error)));
}

/// Removes the temporary file unless it was renamed.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& target) : path_(fmt::format("{}.{}.tmp", target, ::getpid())) {
    descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (descriptor_ < 0) fail(path_, "create a temporary file", errno);
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
    if (!renamed_) ::unlink(path_.c_str());
  }

  void write(std::string_view content) {
    while (!content.empty()) {
      const ssize_t written = ::write(descriptor_, content.data(), content.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) fail(path_, "write", errno);
      content.remove_prefix(static_cast<std::size_t>(written));
    }
  }

  void rename_to(const std::string& target) {
    if (::fsync(descriptor_) != 0) fail(path_, "flush to the disk", errno);
    const int closed = ::close(std::exchange(descriptor_, -1));
    if (closed != 0) fail(path_, "close", errno);
    if (::rename(path_.c_str(), target.c_str()) != 0) fail(target, "replace", errno);
    renamed_ = true;
  }

 private:
  std::string path_;
  int descriptor_ = -1;
  bool renamed_ = false;
};

/// Makes the rename itself durable. Some file systems refuse to flush a folder; the file is whole all the same.
void flush_folder(const std::filesystem::path& folder) noexcept {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  ::fsync(descriptor);
  ::close(descriptor);
}

}  // namespace

void write_file_atomically(const std::string& path, std::string_view content) {
  std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (folder.empty()) folder = ".";
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw FileError(fmt::format("{}: cannot create the folder: {}", folder.string(), error.message()));
  TemporaryFile file(path);
  file.write(content);
  file.rename_to(path);
  flush_folder(folder);
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
