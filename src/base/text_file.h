// A whole file as one string.
#pragma once

#include <string>

namespace razorkv {

/// The whole of a file. Throws FileError.
std::string read_text_file(const std::string& path);

}  // namespace razorkv
