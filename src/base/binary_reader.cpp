#include "base/binary_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <utility>

#include "base/binary_writer.h"
#include "razorkv/error.h"

namespace razorkv {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{1} << 18U;

}  // namespace

BinaryReader::BinaryReader(std::string origin, std::uint64_t size, Source source)
    : origin_(std::move(origin)), size_(size), source_(std::move(source)) {
  if (size < BinaryWriter::kChecksumBytes) {
    refuse(fmt::format("cut short: expected at least the {} bytes of a checksum, found {}",
                       BinaryWriter::kChecksumBytes, size));
  }
  left_ = unread_ = size - BinaryWriter::kChecksumBytes;
}

void BinaryReader::refuse(const std::string& reason) const { throw FileError(origin_ + ": " + reason); }

void BinaryReader::expect(std::string_view what, std::int64_t expected, std::int64_t found) const {
  if (expected != found) refuse(fmt::format("expected {} {}, found {}", what, expected, found));
}

void BinaryReader::require(std::uint64_t count, std::uint64_t item_bytes, std::string_view what) const {
  if (count > left_ / std::max<std::uint64_t>(1, item_bytes)) {
    refuse(fmt::format("cut short or corrupt: expected {} times {} bytes of {}, found {} bytes", count, item_bytes,
                       what, left_));
  }
}

void BinaryReader::fill(std::span<std::byte> out) {
  while (!out.empty()) {
    const std::size_t got = source_(out);
    if (got == 0) refuse(fmt::format("became shorter while it was read: expected {} bytes", size_));
    out = out.subspan(got);
  }
}

void BinaryReader::refill() {
  buffer_.resize(static_cast<std::size_t>(std::min<std::uint64_t>(kBufferBytes, unread_)));
  fill(buffer_);
  hash_.update(buffer_);
  unread_ -= buffer_.size();
  buffered_ = buffer_;
}

void BinaryReader::bytes(std::span<std::byte> out, std::string_view what) {
  require(out.size(), 1, what);
  while (!out.empty()) {
    if (buffered_.empty()) refill();
    const std::size_t taken = std::min(out.size(), buffered_.size());
    std::memcpy(out.data(), buffered_.data(), taken);
    buffered_ = buffered_.subspan(taken);
    out = out.subspan(taken);
    left_ -= taken;
  }
}

bool BinaryReader::boolean(std::string_view what) {
  const std::uint8_t value = u8(what);
  if (value > 1) refuse(fmt::format("expected {} as 0 or 1, found {}", what, value));
  return value == 1;
}

std::string BinaryReader::text(std::string_view what) {
  const std::uint32_t length = u32(what);
  require(length, 1, what);
  std::string text(length, '\0');
  bytes(std::as_writable_bytes(std::span(text)), what);
  return text;
}

void BinaryReader::verify_checksum() {
  while (unread_ > 0) refill();
  std::string expected(BinaryWriter::kChecksumBytes, '\0');
  fill(std::as_writable_bytes(std::span(expected)));
  const std::string found = hash_.hex();
  if (expected == found) return;
  std::replace_if(
      expected.begin(), expected.end(), [](unsigned char c) { return std::isxdigit(c) == 0; }, '?');
  refuse(fmt::format("corrupt: expected the SHA-256 {} (its last {} bytes), found {} for the bytes before", expected,
                     BinaryWriter::kChecksumBytes, found));
}

}  // namespace razorkv
