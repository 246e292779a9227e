// Strict reading of JSON from files: every error names the file, the field, what was expected and what was found.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace razorkv {

/// Throws FileError where `text` is not one complete JSON value.
nlohmann::json parse_json(const std::string& text, const std::string& origin);

/// A value and its place, for example "profile.json: model.layers". The value must outlive it.
class JsonField {
 public:
  JsonField(const nlohmann::json& value, std::string place) : value_(&value), place_(std::move(place)) {}

  const nlohmann::json& raw() const { return *value_; }
  const std::string& place() const { return place_; }
  bool has(const char* name) const;
  /// Member of an object; throws FileError when this is no object or has no such member.
  JsonField operator[](const char* name) const;
  /// Elements of an array.
  std::vector<JsonField> elements() const;
  std::vector<std::pair<std::string, JsonField>> members() const;

  std::string string() const;
  bool boolean() const;
  /// A whole number in [low, high].
  std::int64_t integer(std::int64_t low, std::int64_t high) const;
  std::uint64_t unsigned_integer() const;
  /// A finite number in [low, high].
  double number(double low, double high) const;

  [[noreturn]] void refuse(const std::string& expected) const;

 private:
  const nlohmann::json* value_;
  std::string place_;
};

}  // namespace razorkv
