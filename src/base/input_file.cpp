#include "base/input_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "razorkv/error.h"

namespace razorkv {

InputFile::InputFile(const std::string& path) : path_(path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    throw FileError(fmt::format("{}: cannot open: {}", path, std::strerror(errno)));
  }
  if (S_ISDIR(status.st_mode)) throw FileError(path + ": expected a file, found a folder");
  if (!S_ISREG(status.st_mode)) throw FileError(path + ": expected a regular file, found a device or a pipe");
  size_ = static_cast<std::uint64_t>(status.st_size);
  descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor_ < 0) throw FileError(fmt::format("{}: cannot open: {}", path, std::strerror(errno)));
}

InputFile::~InputFile() { ::close(descriptor_); }

std::size_t InputFile::read(std::span<std::byte> out) {
  while (true) {
    const ssize_t got = ::read(descriptor_, out.data(), out.size());
    if (got >= 0) return static_cast<std::size_t>(got);
    if (errno != EINTR) throw FileError(fmt::format("{}: cannot read: {}", path_, std::strerror(errno)));
  }
}

}  // namespace razorkv
