// Layout of the memory that one attend() call works in.
#pragma once

#include <cstddef>
#include <cstdint>

#include "attention/attention.h"

namespace razorkv {

/// Query vectors (query row x query head) that share one pass over the keys.
inline constexpr std::int64_t kBlockVectors = 128;
/// Query vectors whose logits of one tile exist at a time.
inline constexpr std::int64_t kLogitVectors = 8;

struct AttentionScratch {
  float* q;       ///< [kBlockVectors, stride], scaled
  float* o;       ///< [kBlockVectors, stride]
  float* k;       ///< [width, kPageRows], transposed
  float* v;       ///< [kPageRows, stride]
  float* logits;  ///< [kLogitVectors, kPageRows]
  float* m;       ///< [kBlockVectors]
  float* l;       ///< [kBlockVectors]
  std::int64_t stride;

  static constexpr std::int64_t kAlign = 16;  ///< floats

  /// Rows are padded to whole vectors of the widest target.
  static constexpr std::int64_t padded(std::int64_t width) { return (width + kAlign - 1) / kAlign * kAlign; }

  static constexpr std::int64_t floats(std::int64_t width) {
    return kAlign + 2 * kBlockVectors * padded(width) + kPageRows * (padded(width) + width) +
           kLogitVectors * kPageRows + 2 * kBlockVectors;
  }

  AttentionScratch(float* memory, std::int64_t width) : stride(padded(width)) {
    const auto misaligned =
        static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(memory) / sizeof(float)) % kAlign;
    q = memory + (kAlign - misaligned) % kAlign;
    o = q + kBlockVectors * stride;
    k = o + kBlockVectors * stride;
    v = k + kPageRows * width;
    logits = v + kPageRows * stride;
    m = logits + kLogitVectors * kPageRows;
    l = m + kBlockVectors;
  }
};

}  // namespace razorkv
