// Generated tokens to text that can be shown at once: whole characters only, and nothing of a stop string.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace razorkv {

/// The pieces given out, put together, do not depend on how the text was cut into tokens: they are the whole text up to
/// the stop string that is complete first (of those that end at the same byte, the longest), or all of it. Invalid
/// UTF-8 is given out as U+FFFD.
class TextStream {
 public:
  /// Throws InvalidArgument for a stop string that is empty or not UTF-8.
  explicit TextStream(std::vector<std::string> stops = {});

  /// Takes the bytes of the next token; returns what may be shown now. Nothing after a stop string.
  std::string push(std::string_view bytes);
  /// Call when generation ends: returns what was held back.
  std::string finish();

  bool stopped() const { return stopped_; }
  /// Bytes taken and not given out yet.
  std::size_t held_bytes() const { return held_.size(); }
  /// The stop string that was met; empty: none.
  const std::string& stop() const { return stop_; }

 private:
  std::vector<std::string> stops_;
  std::string held_;  // not given out yet
  std::string stop_;
  bool stopped_ = false;
};

}  // namespace razorkv
