// The version of the headers and of the library that runs.
#pragma once

#define RAZORKV_VERSION_STRING "0.1.0"

namespace razorkv {

/// Version of the library, "major.minor.patch"; equals RAZORKV_VERSION_STRING when headers and library belong together.
const char* version() noexcept;

}  // namespace razorkv
