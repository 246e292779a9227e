#include "model/config_keys.h"

#include <fmt/format.h>

namespace razorkv {

void ConfigKeys::check_count(std::string_view name, std::uint64_t found, std::int64_t least, std::int64_t most) const {
  if (found < static_cast<std::uint64_t>(least) || found > static_cast<std::uint64_t>(most)) {
    gguf_.fail(fmt::format("key '{}' should be {} to {}, found {}", full(name), least, most, found));
  }
}

std::int64_t ConfigKeys::count(std::string_view name, std::int64_t least, std::int64_t most) const {
  const std::uint64_t found = gguf_.require_unsigned(full(name));
  check_count(name, found, least, most);
  return static_cast<std::int64_t>(found);
}

std::optional<std::int64_t> ConfigKeys::find_count(std::string_view name, std::int64_t least, std::int64_t most) const {
  const auto found = gguf_.find_unsigned(full(name));
  if (!found) return std::nullopt;
  check_count(name, *found, least, most);
  return static_cast<std::int64_t>(*found);
}

std::optional<float> ConfigKeys::find_real(std::string_view name, float least, float most) const {
  const auto found = gguf_.find_float(full(name));
  // Negated so that a NaN is refused.
  if (found && !(*found >= least && *found <= most)) {
    gguf_.fail(fmt::format("key '{}' should be {} to {}, found {}", full(name), least, most, *found));
  }
  return found;
}

}  // namespace razorkv
