// Per-target code: blocks of quantised weights to unsigned 8-bit values with float32 scales.
//
// A format is a struct with
//   kElements, kBytes   of a block
//   kGroup              elements that share a scale, 16 or 32
//   kShift              weight = scale * (value - 2^kShift); or kNoShift: weight = scale * value + offset
//   Unpack(block, values [kElements], scales [kElements / kGroup], offsets [kElements / kGroup], unread if kShift)
#if defined(RAZORKV_UNPACK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RAZORKV_UNPACK_INL_H_
#undef RAZORKV_UNPACK_INL_H_
#else
#define RAZORKV_UNPACK_INL_H_
#endif

#include <hwy/highway.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace razorkv {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

inline constexpr int kNoShift = -1;

HWY_INLINE float LoadHalf(const std::uint8_t* p) {
  const hn::CappedTag<float, 1> d;
  const hn::Rebind<hwy::float16_t, decltype(d)> d16;
  hwy::float16_t half;
  std::memcpy(&half, p, sizeof half);
  return hn::GetLane(hn::PromoteTo(d, hn::LoadU(d16, &half)));
}

/// Low halves of 16 bytes, then high halves.
HWY_INLINE void UnpackNibbles(const std::uint8_t* in, std::uint8_t* out) {
  const hn::CappedTag<std::uint8_t, 16> d;
  for (std::size_t i = 0; i < 16; i += hn::Lanes(d)) {
    const auto v = hn::LoadU(d, in + i);
    hn::StoreU(hn::And(v, hn::Set(d, std::uint8_t{15})), d, out + i);
    for (std::size_t j = 0; j < hn::Lanes(d); ++j) out[16 + i + j] = static_cast<std::uint8_t>(in[i + j] >> 4U);
  }
}

/// Adds 16 to the values whose bit is set.
HWY_INLINE void AddFifthBits(const std::uint8_t* bits, std::uint8_t* values) {
  for (std::size_t byte = 0; byte < 4; ++byte) {
    // One bit to each byte of a word: 8 copies, each masked to its own bit, the bit moved to 16.
    const std::uint64_t copies = bits[byte] * 0x0101010101010101ULL;
    const std::uint64_t own = copies & 0x8040201008040201ULL;
    const std::uint64_t set = ((own + 0x7F7F7F7F7F7F7F7FULL) | own) & 0x8080808080808080ULL;
    std::uint64_t word = 0;
    std::memcpy(&word, values + 8 * byte, sizeof word);
    word |= set >> 3U;
    std::memcpy(values + 8 * byte, &word, sizeof word);
  }
}

/// 6-bit scale and offset of group `g` of a 256-element block from its 12 bytes.
struct PackedScale {
  float scale;
  float offset;
};
HWY_INLINE PackedScale LoadPackedScale(const std::uint8_t* packed, std::size_t g) {
  if (g < 4) return {static_cast<float>(packed[g] & 63U), static_cast<float>(packed[g + 4] & 63U)};
  const unsigned low = packed[g + 4];
  return {static_cast<float>((low & 15U) | ((packed[g - 4] & 0xC0U) >> 2U)),
          static_cast<float>((low >> 4U) | ((packed[g] & 0xC0U) >> 2U))};
}

template <std::size_t kBlockBytes, std::size_t kGroupSize, int kZeroShift, std::size_t kBlockElements>
struct Format {
  static constexpr std::size_t kElements = kBlockElements;
  static constexpr std::size_t kBytes = kBlockBytes;
  static constexpr std::size_t kGroup = kGroupSize;
  static constexpr int kShift = kZeroShift;
};

struct Q4_0 : Format<18, 32, 3, 32> {
  static HWY_INLINE void Unpack(const std::uint8_t* block, std::uint8_t* values, float* scales, float*) {
    *scales = LoadHalf(block);
    UnpackNibbles(block + 2, values);
  }
};

struct Q4_1 : Format<20, 32, kNoShift, 32> {
  static HWY_INLINE void Unpack(const std::uint8_t* block, std::uint8_t* values, float* scales, float* offsets) {
    *scales = LoadHalf(block);
    *offsets = LoadHalf(block + 2);
    UnpackNibbles(block + 4, values);
  }
};

struct Q5_0 : Format<22, 32, 4, 32> {
  static HWY_INLINE void Unpack(const std::uint8_t* block, std::uint8_t* values, float* scales, float*) {
    *scales = LoadHalf(block);
    UnpackNibbles(block + 6, values);
    AddFifthBits(block + 2, values);
  }
};

struct Q5_1 : Format<24, 32, kNoShift, 32> {
  static HWY_INLINE void Unpack(const std::uint8_t* block, std::uint8_t* values, float* scales, float* offsets) {
    *scales = LoadHalf(block);
    *offsets = LoadHalf(block + 2);
    UnpackNibbles(block + 8, values);
    AddFifthBits(block + 4, values);
  }
};

struct Q8_0 : Format<34, 32, 7, 32> {
  static HWY_INLINE void Unpack(const std::uint8_t* block, std::uint8_t* values, float* scales, float*) {
    *scales = LoadHalf(block);
    for (std::size_t i = 0; i < 32; ++i) values[i] = static_cast<std::uint8_t>(block[2 + i] ^ 0x80U);
  }
};

struct Q4_K : Format<144, 32, kNoShift, 256> {
  static HWY_INLINE void Unpack(const std::uint8_t* block, std::uint8_t* values, float* scales, float* offsets) {
    const float scale = LoadHalf(block);
    const float offset = LoadHalf(block + 2);
    for (std::size_t g = 0; g < 8; ++g) {
      const PackedScale packed = LoadPackedScale(block + 4, g);
      scales[g] = scale * packed.scale;
      offsets[g] = -offset * packed.offset;
    }
    for (std::size_t pair = 0; pair < 4; ++pair) {
      const std::uint8_t* in = block + 16 + 32 * pair;
      std::uint8_t* out = values + 64 * pair;
      for (std::size_t i = 0; i < 32; ++i) {
        out[i] = static_cast<std::uint8_t>(in[i] & 15U);
        out[32 + i] = static_cast<std::uint8_t>(in[i] >> 4U);
      }
    }
  }
};

struct Q5_K : Format<176, 32, kNoShift, 256> {
  static HWY_INLINE void Unpack(const std::uint8_t* block, std::uint8_t* values, float* scales, float* offsets) {
    const float scale = LoadHalf(block);
    const float offset = LoadHalf(block + 2);
    const std::uint8_t* high = block + 16;
    for (std::size_t g = 0; g < 8; ++g) {
      const PackedScale packed = LoadPackedScale(block + 4, g);
      scales[g] = scale * packed.scale;
      offsets[g] = -offset * packed.offset;
    }
    for (std::size_t pair = 0; pair < 4; ++pair) {
      const std::uint8_t* in = block + 48 + 32 * pair;
      std::uint8_t* out = values + 64 * pair;
      for (std::size_t i = 0; i < 32; ++i) {
        out[i] = static_cast<std::uint8_t>((in[i] & 15U) | (((high[i] >> (2 * pair)) & 1U) << 4U));
        out[32 + i] = static_cast<std::uint8_t>((in[i] >> 4U) | (((high[i] >> (2 * pair + 1)) & 1U) << 4U));
      }
    }
  }
};

struct Q6_K : Format<210, 16, 5, 256> {
  static HWY_INLINE void Unpack(const std::uint8_t* block, std::uint8_t* values, float* scales, float*) {
    const float scale = LoadHalf(block + 208);
    for (std::size_t g = 0; g < 16; ++g) {
      scales[g] = scale * static_cast<float>(static_cast<std::int8_t>(block[192 + g]));
    }
    for (std::size_t half = 0; half < 2; ++half) {
      const std::uint8_t* low = block + 64 * half;
      const std::uint8_t* high = block + 128 + 32 * half;
      std::uint8_t* out = values + 128 * half;
      for (std::size_t i = 0; i < 32; ++i) {
        out[i] = static_cast<std::uint8_t>((low[i] & 15U) | ((high[i] & 3U) << 4U));
        out[32 + i] = static_cast<std::uint8_t>((low[32 + i] & 15U) | ((high[i] & 12U) << 2U));
        out[64 + i] = static_cast<std::uint8_t>((low[i] >> 4U) | (high[i] & 48U));
        out[96 + i] = static_cast<std::uint8_t>((low[32 + i] >> 4U) | ((high[i] & 192U) >> 2U));
      }
    }
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace razorkv
HWY_AFTER_NAMESPACE();

#endif  // include guard
