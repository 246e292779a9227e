#include "engine/text_stream.h"

#include <algorithm>

#include "base/utf8.h"
#include "razorkv/error.h"

namespace razorkv {

TextStream::TextStream(std::vector<std::string> stops) : stops_(std::move(stops)) {
  for (const std::string& stop : stops_) {
    if (stop.empty()) throw InvalidArgument("a stop string must not be empty");
    if (!is_valid_utf8(stop)) {
      throw InvalidArgument("a stop string must be UTF-8, found '" + replace_invalid_utf8(stop) + "'");
    }
  }
}

std::string TextStream::push(std::string_view bytes) {
  if (stopped_) return {};
  held_ += bytes;

  // All text that could be the beginning of a stop string has been held back, so a stop string lies in held_ as a
  // whole.
  std::size_t begin = std::string::npos;
  std::size_t end = std::string::npos;
  for (const std::string& stop : stops_) {
    const std::size_t found = held_.find(stop);
    if (found == std::string::npos) continue;
    const std::size_t found_end = found + stop.size();
    if (found_end < end || (found_end == end && found < begin)) {
      begin = found;
      end = found_end;
      stop_ = stop;
    }
  }
  if (begin != std::string::npos) {
    stopped_ = true;
    std::string out = replace_invalid_utf8(std::string_view(held_).substr(0, begin));
    held_.clear();
    return out;
  }

  std::size_t hold = 0;  // bytes at the end that may be the beginning of a stop string
  for (const std::string& stop : stops_) {
    for (std::size_t length = std::min(stop.size() - 1, held_.size()); length > hold; --length) {
      if (std::string_view(held_).ends_with(std::string_view(stop).substr(0, length))) hold = length;
    }
  }
  const std::size_t shown = complete_utf8_prefix(std::string_view(held_).substr(0, held_.size() - hold));
  std::string out = replace_invalid_utf8(std::string_view(held_).substr(0, shown));
  held_.erase(0, shown);
  return out;
}

std::string TextStream::finish() {
  std::string out = replace_invalid_utf8(held_);
  held_.clear();
  return out;
}

}  // namespace razorkv
