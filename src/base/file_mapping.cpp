#include "base/file_mapping.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#include "razorkv/error.h"

namespace razorkv {
namespace {

/// Closes the descriptor at the end of the scope; the mapping outlives it.
struct Descriptor {
  int value;
  ~Descriptor() {
    if (value >= 0) ::close(value);
  }
};

}  // namespace

FileMapping::FileMapping(const std::string& path) {
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (file.value < 0) throw FileError("cannot open " + path + ": " + std::strerror(errno));
  struct stat status {};
  if (::fstat(file.value, &status) != 0) throw FileError("cannot inspect " + path + ": " + std::strerror(errno));
  if (S_ISDIR(status.st_mode)) throw FileError(path + " is a directory; a file was expected");
  if (!S_ISREG(status.st_mode)) throw FileError(path + " is not a regular file");
  if (status.st_size == 0) throw FileError(path + " is empty (0 bytes)");
  size_ = static_cast<std::size_t>(status.st_size);
  void* mapped = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file.value, 0);
  if (mapped == MAP_FAILED) throw FileError("cannot map " + path + " into memory: " + std::strerror(errno));
  data_ = static_cast<const std::byte*>(mapped);
}

FileMapping::~FileMapping() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

FileMapping::FileMapping(FileMapping&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

FileMapping& FileMapping::operator=(FileMapping&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

void FileMapping::forget(std::span<const std::byte> part) const noexcept {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto address = reinterpret_cast<std::uintptr_t>(part.data());
  const std::uintptr_t begin = (address + page - 1) / page * page;
  const std::uintptr_t end = (address + part.size()) / page * page;
  if (begin < end) ::madvise(const_cast<std::byte*>(part.data()) + (begin - address), end - begin, MADV_DONTNEED);
}

}  // namespace razorkv
