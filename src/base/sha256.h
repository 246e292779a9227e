// SHA-256 (FIPS 180-4), for fingerprints and file checks; not for secrets.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace razorkv {

/// Takes the message in pieces of any size.
class Sha256 {
 public:
  Sha256();
  void update(std::span<const std::byte> bytes);
  void update(std::string_view text);
  /// Adds the eight bytes of `value`, lowest first, so that numbers hash alike on every machine.
  void update_number(std::uint64_t value);
  /// 64 lower-case hex digits. The object is used up afterwards.
  std::string hex();

 private:
  void compress(const std::uint8_t* block);

  std::array<std::uint32_t, 8> state_;
  std::array<std::uint8_t, 64> pending_{};
  std::size_t pending_bytes_ = 0;
  std::uint64_t total_bytes_ = 0;
};

std::string sha256_hex(std::span<const std::byte> bytes);

/// Hash of a whole file. Throws FileError when it cannot be read.
std::string sha256_of_file(const std::string& path);

}  // namespace razorkv
