// Small types shared by the public headers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

namespace razorkv {

/// Index into the model's vocabulary.
using Token = std::int32_t;

/// Called during long work with what is done and what there is in all; returning false stops it with Cancelled.
using Progress = std::function<bool(std::int64_t done, std::int64_t total)>;

/// Element type of the rows in the KV cache.
enum class KvType : std::uint8_t { f32, f16 };

}  // namespace razorkv
