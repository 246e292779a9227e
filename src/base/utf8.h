// UTF-8 on byte strings that may be invalid or cut in the middle of a character.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace razorkv {

/// Bytes of the longest prefix of `text` that does not end inside a character that further bytes could complete.
/// Invalid bytes count as complete: only a tail that is a proper prefix of a valid character is left off (1 to 3
/// bytes).
std::size_t complete_utf8_prefix(std::string_view text) noexcept;

/// `text` with every maximal invalid subsequence replaced by U+FFFD (the Unicode standard's recommended practice:
/// overlong forms, surrogates and values above U+10FFFF are invalid).
std::string replace_invalid_utf8(std::string_view text);

/// Whether replace_invalid_utf8() would change nothing.
bool is_valid_utf8(std::string_view text) noexcept;

}  // namespace razorkv
