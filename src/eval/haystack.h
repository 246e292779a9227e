// Long text that needles are hidden in.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace razorkv {

/// Reads a haystack: a JSON object with the text in "text", or a text file. Line ends become "\n", a byte order mark is
/// dropped, and of a Project Gutenberg book only what lies between the lines "*** START OF ..." and "*** END OF ...".
/// Throws FileError when it cannot be read, holds no text, or is JSON of another form.
std::string read_haystack(const std::string& path);

/// The part between Project Gutenberg's lines; all of it where there are none.
std::string_view without_gutenberg_frame(std::string_view text);

/// `text` from the given character (Unicode code point, from 0) on. Throws InvalidArgument when it has fewer.
std::string_view from_character(std::string_view text, std::int64_t character);

}  // namespace razorkv
