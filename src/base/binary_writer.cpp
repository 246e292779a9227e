#include "base/binary_writer.h"

#include <algorithm>
#include <bit>
#include <string>
#include <utility>

namespace razorkv {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are written as they lie in memory");
constexpr std::size_t kBufferBytes = std::size_t{1} << 18U;

}  // namespace

BinaryWriter::BinaryWriter(Sink sink) : sink_(std::move(sink)) {
  if (sink_) buffer_.reserve(kBufferBytes);
}

void BinaryWriter::bytes(std::span<const std::byte> bytes) {
  size_ += bytes.size();
  if (!sink_) return;
  while (!bytes.empty()) {
    const std::size_t taken = std::min(bytes.size(), kBufferBytes - buffer_.size());
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(taken));
    bytes = bytes.subspan(taken);
    if (buffer_.size() == kBufferBytes) flush();
  }
}

void BinaryWriter::text(std::string_view text) {
  u32(static_cast<std::uint32_t>(text.size()));
  bytes(std::as_bytes(std::span(text)));
}

void BinaryWriter::flush() {
  hash_.update(buffer_);
  sink_(buffer_);
  buffer_.clear();
}

void BinaryWriter::finish() {
  if (!sink_) {
    size_ += kChecksumBytes;
    return;
  }
  flush();
  const std::string checksum = hash_.hex();
  size_ += checksum.size();
  sink_(std::as_bytes(std::span(checksum)));
}

}  // namespace razorkv
