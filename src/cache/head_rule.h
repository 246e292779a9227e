// What one KV head keeps of the context.
#pragma once

#include <algorithm>
#include <cstdint>

namespace razorkv {

/// Either everything, or the first `sinks` rows, the last window(n) rows, and (if `compensate`) one compensation row
/// for the rest. A window counts the newest row itself: a query at position p sees [p + 1 - window(p + 1), p].
struct HeadRule {
  bool everything = true;
  std::int64_t sinks = 0;
  std::int64_t window_floor = 0;    ///< rows, at least 1 unless `everything`
  std::int64_t window_divisor = 0;  ///< 0 = fixed window; else window(n) = max(floor, n / divisor), divisor >= 1
  bool compensate = true;

  /// Rows of the recent window at `n` tokens of context.
  std::int64_t window(std::int64_t n) const {
    return std::max(window_floor, window_divisor > 0 ? n / window_divisor : std::int64_t{0});
  }
  /// First paged position that the query at `position` sees. Rows between the sinks and it are dropped for that query.
  std::int64_t window_begin(std::int64_t position) const {
    return everything ? 0 : std::max(std::min(sinks, position + 1), position + 1 - window(position + 1));
  }

  static HeadRule all() { return {}; }
  /// A model's own sliding-window layer: the last `window` rows and nothing else.
  static HeadRule sliding(std::int64_t window) { return {false, 0, window, 0, false}; }

  bool operator==(const HeadRule&) const = default;
};

}  // namespace razorkv
