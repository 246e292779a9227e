// Block formats of quantised weight rows, as GGUF files have them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace razorkv {

enum class BlockType : std::uint8_t { q4_0, q4_1, q5_0, q5_1, q8_0, q4_k, q5_k, q6_k };

struct BlockShape {
  std::int64_t elements = 0;  ///< of a row that one block holds
  std::size_t bytes = 0;
};

constexpr BlockShape block_shape(BlockType type) noexcept {
  switch (type) {
    case BlockType::q4_0:
      return {32, 18};
    case BlockType::q4_1:
      return {32, 20};
    case BlockType::q5_0:
      return {32, 22};
    case BlockType::q5_1:
      return {32, 24};
    case BlockType::q8_0:
      return {32, 34};
    case BlockType::q4_k:
      return {256, 144};
    case BlockType::q5_k:
      return {256, 176};
    case BlockType::q6_k:
      return {256, 210};
  }
  return {};
}

}  // namespace razorkv
