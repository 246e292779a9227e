// The command line as CLI11 takes it.
#pragma once

#include <string>
#include <vector>

namespace razorkv::cli {

/// Arguments (without the program's name) with llama.cpp's short options of several letters (-ctk, -tb, ...) written
/// long, and -p TEXT as --prompt=TEXT so that a text may begin with a dash.
std::vector<std::string> normalized_arguments(int argc, const char* const* argv);

}  // namespace razorkv::cli
