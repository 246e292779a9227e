// Numbers and bytes of a binary file, little-endian, in explicit widths, with a SHA-256 at the end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "base/sha256.h"

namespace razorkv {

class BinaryWriter {
 public:
  /// Bytes of the checksum that finish() writes: 64 hexadecimal digits.
  static constexpr std::uint64_t kChecksumBytes = 64;
  using Sink = std::function<void(std::span<const std::byte>)>;

  /// Hands the bytes to `sink` in blocks through a buffer of fixed size. Without a sink they are only counted.
  explicit BinaryWriter(Sink sink = nullptr);

  void bytes(std::span<const std::byte> bytes);
  void u8(std::uint8_t value) { number(value); }
  void u32(std::uint32_t value) { number(value); }
  void u64(std::uint64_t value) { number(value); }
  void i64(std::int64_t value) { number(value); }
  /// Length as u32, then the bytes.
  void text(std::string_view text);
  template <typename Number>
  void array(std::span<const Number> numbers) {
    bytes(std::as_bytes(numbers));
  }

  /// Bytes put so far.
  std::uint64_t size() const noexcept { return size_; }
  /// Appends the SHA-256 of all bytes so far and hands over what is left in the buffer.
  void finish();

 private:
  template <typename Number>
  void number(Number value) {
    bytes(std::as_bytes(std::span(&value, 1)));
  }
  void flush();

  Sink sink_;
  std::vector<std::byte> buffer_;
  std::uint64_t size_ = 0;
  Sha256 hash_;
};

}  // namespace razorkv
