#include "base/utf8.h"

namespace razorkv {
namespace {

struct Step {
  std::size_t bytes = 0;  // length of the character, or of the maximal invalid subsequence
  bool valid = false;
  bool cut = false;  // the text ends inside what could become a valid character
};

Step next_character(std::string_view text) noexcept {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {1, true, false};
  std::size_t length = 0;
  unsigned char low = 0x80;
  unsigned char high = 0xBF;
  if (lead >= 0xC2 && lead <= 0xDF) {
    length = 2;
  } else if (lead >= 0xE0 && lead <= 0xEF) {
    length = 3;
    if (lead == 0xE0) low = 0xA0;   // shorter forms exist
    if (lead == 0xED) high = 0x9F;  // surrogates
  } else if (lead >= 0xF0 && lead <= 0xF4) {
    length = 4;
    if (lead == 0xF0) low = 0x90;   // shorter forms exist
    if (lead == 0xF4) high = 0x8F;  // above U+10FFFF
  } else {
    return {1, false, false};
  }
  for (std::size_t i = 1; i < length; ++i) {
    if (i == text.size()) return {i, false, true};
    if (byte(i) < low || byte(i) > high) return {i, false, false};
    low = 0x80;
    high = 0xBF;
  }
  return {length, true, false};
}

}  // namespace

std::size_t complete_utf8_prefix(std::string_view text) noexcept {
  const std::size_t reach = text.size() < 3 ? text.size() : 3;
  for (std::size_t back = reach; back > 0; --back) {
    const std::size_t begin = text.size() - back;
    const auto lead = static_cast<unsigned char>(text[begin]);
    if (lead >= 0xC2 && lead <= 0xF4 && next_character(text.substr(begin)).cut) return begin;
  }
  return text.size();
}

std::string replace_invalid_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Step step = next_character(text);
    if (step.valid) {
      out.append(text.substr(0, step.bytes));
    } else {
      out.append("\xEF\xBF\xBD");
    }
    text.remove_prefix(step.bytes);
  }
  return out;
}

bool is_valid_utf8(std::string_view text) noexcept {
  while (!text.empty()) {
    const Step step = next_character(text);
    if (!step.valid) return false;
    text.remove_prefix(step.bytes);
  }
  return true;
}

}  // namespace razorkv
