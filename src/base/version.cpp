#include "razorkv/version.h"

#include <string_view>

namespace razorkv {

static_assert(std::string_view(RAZORKV_VERSION) == RAZORKV_VERSION_STRING,
              "project(razorkv VERSION) and version.h differ");

const char* version() noexcept { return RAZORKV_VERSION; }

}  // namespace razorkv
