#include "base/json_fields.h"

#include <fmt/format.h>

#include "base/json_values.h"
#include "razorkv/error.h"

namespace razorkv {

nlohmann::json parse_json(const std::string& text, const std::string& origin) {
  try {
    return nlohmann::json::parse(text);
  } catch (const nlohmann::json::exception& error) {
    throw FileError(fmt::format("{}: expected complete JSON: {}", origin, error.what()));
  }
}

void JsonField::refuse(const std::string& expected) const {
  // Invalid UTF-8 cannot occur: the parser refuses it. Long values are cut.
  std::string found = value_->dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  if (found.size() > 60) found = found.substr(0, 60) + "...";
  throw FileError(fmt::format("{}: expected {}, found {}", place_, expected, found));
}

bool JsonField::has(const char* name) const { return value_->is_object() && value_->contains(name); }

JsonField JsonField::operator[](const char* name) const {
  if (!value_->is_object()) refuse("an object");
  const auto member = value_->find(name);
  if (member == value_->end()) throw FileError(fmt::format("{}: expected a field '{}', found none", place_, name));
  return {*member, fmt::format("{}.{}", place_, name)};
}

std::vector<JsonField> JsonField::elements() const {
  if (!value_->is_array()) refuse("an array");
  std::vector<JsonField> fields;
  for (std::size_t i = 0; i < value_->size(); ++i) fields.emplace_back((*value_)[i], fmt::format("{}[{}]", place_, i));
  return fields;
}

std::vector<std::pair<std::string, JsonField>> JsonField::members() const {
  if (!value_->is_object()) refuse("an object");
  std::vector<std::pair<std::string, JsonField>> fields;
  for (const auto& [name, value] : value_->items()) {
    fields.emplace_back(name, JsonField(value, fmt::format("{}.{}", place_, name)));
  }
  return fields;
}

std::string JsonField::string() const {
  if (!value_->is_string()) refuse("a string");
  return value_->get<std::string>();
}

bool JsonField::boolean() const {
  if (!value_->is_boolean()) refuse("true or false");
  return value_->get<bool>();
}

std::int64_t JsonField::integer(std::int64_t low, std::int64_t high) const {
  if (const auto number = whole_number(*value_, low, high)) return *number;
  refuse(fmt::format("a whole number from {} to {}", low, high));
}

std::uint64_t JsonField::unsigned_integer() const {
  if (!value_->is_number_unsigned()) refuse("a whole number, not negative");
  return value_->get<std::uint64_t>();
}

double JsonField::number(double low, double high) const {
  if (const auto number = number_between(*value_, low, high)) return *number;
  refuse(fmt::format("a number from {} to {}", low, high));
}

}  // namespace razorkv
