#include "server/json_request.h"

#include <fmt/format.h>

#include <cmath>

#include "base/json_values.h"
#include "server/api_error.h"

namespace razorkv::server {
namespace {

bool too_deep(const std::string& body) {
  int depth = 0;
  bool text = false;
  for (std::size_t i = 0; i < body.size(); ++i) {
    const char c = body[i];
    if (text) {
      if (c == '\\') ++i;
      if (c == '"') text = false;
    } else if (c == '"') {
      text = true;
    } else if (c == '[' || c == '{') {
      if (++depth > kDeepestJson) return true;
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return false;
}

}  // namespace

nlohmann::json parse_request(const std::string& body) {
  if (too_deep(body)) {
    throw ApiError(400, fmt::format("the body is nested deeper than {} arrays and objects", kDeepestJson));
  }
  nlohmann::json value;
  try {
    value = nlohmann::json::parse(body);
  } catch (const nlohmann::json::exception& error) {
    throw ApiError(400, fmt::format("the body is not JSON: {}", error.what()));
  }
  if (!value.is_object()) {
    throw ApiError(400, fmt::format("the body must be a JSON object, found {}", value.type_name()));
  }
  return value;
}

void RequestField::refuse(const std::string& expected) const {
  std::string found = value_->dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  if (found.size() > 60 || value_->is_structured()) found = value_->type_name();
  throw ApiError(400, fmt::format("{}: expected {}, found {}", path_, expected, found), path_, "invalid_value");
}

std::optional<RequestField> RequestField::find(const char* name) const {
  if (!value_->is_object()) refuse("an object");
  const auto member = value_->find(name);
  if (member == value_->end() || member->is_null()) return std::nullopt;
  return RequestField(*member, path_.empty() ? name : fmt::format("{}.{}", path_, name));
}

RequestField RequestField::at(const char* name) const {
  if (auto field = find(name)) return *field;
  const std::string path = path_.empty() ? name : fmt::format("{}.{}", path_, name);
  throw ApiError(400, path + ": this field is required", path, "missing_required_parameter");
}

std::vector<RequestField> RequestField::elements(std::size_t most) const {
  if (!value_->is_array()) refuse("an array");
  if (value_->size() > most) {
    throw ApiError(400, fmt::format("{}: at most {} elements, found {}", path_, most, value_->size()), path_);
  }
  std::vector<RequestField> out;
  for (std::size_t i = 0; i < value_->size(); ++i) out.emplace_back((*value_)[i], fmt::format("{}[{}]", path_, i));
  return out;
}

std::string RequestField::string(std::size_t most_bytes) const {
  if (!value_->is_string()) refuse("a string");
  const auto& text = value_->get_ref<const std::string&>();
  if (text.size() > most_bytes) {
    throw ApiError(400, fmt::format("{}: at most {} bytes, found {}", path_, most_bytes, text.size()), path_);
  }
  return text;
}

bool RequestField::boolean() const {
  if (!value_->is_boolean()) refuse("true or false");
  return value_->get<bool>();
}

std::int64_t RequestField::integer(std::int64_t low, std::int64_t high) const {
  if (const auto number = whole_number(*value_, low, high)) return *number;
  refuse(fmt::format("a whole number from {} to {}", low, high));
}

double RequestField::number(double low, double high) const {
  if (const auto number = number_between(*value_, low, high)) return *number;
  refuse(fmt::format("a number from {} to {}", low, high));
}

bool RequestField::boolean(const char* name, bool otherwise) const {
  const auto field = find(name);
  return field ? field->boolean() : otherwise;
}

std::int64_t RequestField::integer(const char* name, std::int64_t low, std::int64_t high,
                                   std::int64_t otherwise) const {
  const auto field = find(name);
  return field ? field->integer(low, high) : otherwise;
}

double RequestField::number(const char* name, double low, double high, double otherwise) const {
  const auto field = find(name);
  return field ? field->number(low, high) : otherwise;
}

std::string RequestField::string(const char* name, const std::string& otherwise, std::size_t most_bytes) const {
  const auto field = find(name);
  return field ? field->string(most_bytes) : otherwise;
}

}  // namespace razorkv::server
