// Values of JSON, where they are what is expected.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>

namespace razorkv {

/// A whole number in [low, high]; nothing for any other value.
std::optional<std::int64_t> whole_number(const nlohmann::json& value, std::int64_t low, std::int64_t high);

/// A finite number in [low, high]; nothing for any other value.
std::optional<double> number_between(const nlohmann::json& value, double low, double high);

}  // namespace razorkv
