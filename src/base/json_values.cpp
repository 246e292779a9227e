#include "base/json_values.h"

namespace razorkv {

std::optional<std::int64_t> whole_number(const nlohmann::json& value, std::int64_t low, std::int64_t high) {
  if (!value.is_number_integer()) return std::nullopt;
  if (value.is_number_unsigned() && value.get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX)) {
    return std::nullopt;
  }
  const auto number = value.get<std::int64_t>();
  if (number < low || number > high) return std::nullopt;
  return number;
}

std::optional<double> number_between(const nlohmann::json& value, double low, double high) {
  if (!value.is_number()) return std::nullopt;
  const auto number = value.get<double>();
  if (!(number >= low && number <= high)) return std::nullopt;
  return number;
}

}  // namespace razorkv
