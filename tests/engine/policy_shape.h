// The heads that policies are built for in tests.
#pragma once

#include <cstdint>

#include "heads/head_shape.h"

namespace razorkv::test {

inline constexpr std::int64_t kRowBytes = 256;

/// 5 layers of 4 query and 2 KV heads; layer 4 has a window of 50 of the model's own.
inline HeadShape policy_shape() {
  HeadShape made;
  made.layers.assign(5, {4, 2, false});
  made.layers[4].sliding = true;
  made.head_width = 32;
  made.sliding_window = 50;
  return made;
}

}  // namespace razorkv::test
