// Reads what BinaryWriter wrote, trusting nothing: every length is checked against the bytes that are left.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/sha256.h"

namespace razorkv {

class BinaryReader {
 public:
  /// Fills the span from the front and returns how many bytes it gave; 0 at the end.
  using Source = std::function<std::size_t(std::span<std::byte>)>;

  /// `size`: bytes of the whole file, checksum included. `origin` begins every message.
  /// Throws FileError where `size` is less than a checksum's.
  BinaryReader(std::string origin, std::uint64_t size, Source source);

  // `what` names the value in the FileError thrown when fewer bytes are left than it takes.
  std::uint8_t u8(std::string_view what) { return number<std::uint8_t>(what); }
  std::uint32_t u32(std::string_view what) { return number<std::uint32_t>(what); }
  std::uint64_t u64(std::string_view what) { return number<std::uint64_t>(what); }
  std::int64_t i64(std::string_view what) { return number<std::int64_t>(what); }
  bool boolean(std::string_view what);
  std::string text(std::string_view what);
  void bytes(std::span<std::byte> out, std::string_view what);
  template <typename Number>
  std::vector<Number> array(std::uint64_t count, std::string_view what) {
    require(count, sizeof(Number), what);
    std::vector<Number> numbers(static_cast<std::size_t>(count));
    bytes(std::as_writable_bytes(std::span(numbers)), what);
    return numbers;
  }

  /// Throws FileError where fewer than `count` items of `item_bytes` are left: to be called before memory is taken.
  void require(std::uint64_t count, std::uint64_t item_bytes, std::string_view what) const;
  /// Throws FileError naming the value, what was expected and what was found.
  void expect(std::string_view what, std::int64_t expected, std::int64_t found) const;
  [[noreturn]] void refuse(const std::string& reason) const;

  /// Bytes before the checksum that were not read yet.
  std::uint64_t remaining() const noexcept { return left_; }
  /// Reads the rest and compares the checksum. Throws FileError where it differs. To be called once, at last.
  void verify_checksum();

 private:
  template <typename Number>
  Number number(std::string_view what) {
    Number value;
    bytes(std::as_writable_bytes(std::span(&value, 1)), what);
    return value;
  }
  void refill();
  void fill(std::span<std::byte> out);

  std::string origin_;
  std::uint64_t size_;
  Source source_;
  std::vector<std::byte> buffer_;
  std::span<const std::byte> buffered_;
  std::uint64_t left_;    // before the checksum, buffered or not
  std::uint64_t unread_;  // of these, still in the source
  Sha256 hash_;
};

}  // namespace razorkv
