// Seeded draws that are the same on every platform (std::uniform_int_distribution is not).
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <utility>
#include <vector>

namespace razorkv {

/// Uniform in [0, bound), bound >= 1.
inline std::uint64_t bounded_draw(std::mt19937_64& rng, std::uint64_t bound) {
  // Reject the incomplete last run of `bound` values, so that no remainder is more likely than another.
  const std::uint64_t limit = std::numeric_limits<std::uint64_t>::max() / bound * bound;
  std::uint64_t value = rng();
  while (value >= limit) value = rng();
  return value % bound;
}

/// Moves `count` distinct elements, drawn uniformly, to the front of `items`; count <= items.size().
template <typename T>
void draw_to_front(std::mt19937_64& rng, std::vector<T>& items, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) std::swap(items[i], items[i + bounded_draw(rng, items.size() - i)]);
}

}  // namespace razorkv
