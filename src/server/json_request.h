// Strict reading of request bodies.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace razorkv::server {

/// Arrays and objects inside one another, at most.
inline constexpr int kDeepestJson = 64;

/// Throws ApiError (400) unless `body` is one JSON object in UTF-8 that is not nested too deeply.
nlohmann::json parse_request(const std::string& body);

/// A field of a request and its path, such as "messages[2].role". Every wrong type or range is an ApiError (400) that
/// names it. null counts as absent.
class RequestField {
 public:
  explicit RequestField(const nlohmann::json& value, std::string path = {}) : value_(&value), path_(std::move(path)) {}

  const nlohmann::json& raw() const { return *value_; }
  const std::string& path() const { return path_; }
  std::optional<RequestField> find(const char* name) const;
  /// Throws when there is none.
  RequestField at(const char* name) const;
  std::vector<RequestField> elements(std::size_t most) const;

  std::string string(std::size_t most_bytes = SIZE_MAX) const;
  bool boolean() const;
  std::int64_t integer(std::int64_t low, std::int64_t high) const;
  double number(double low, double high) const;

  /// Of a member, or `otherwise` where it is absent.
  bool boolean(const char* name, bool otherwise) const;
  std::int64_t integer(const char* name, std::int64_t low, std::int64_t high, std::int64_t otherwise) const;
  double number(const char* name, double low, double high, double otherwise) const;
  std::string string(const char* name, const std::string& otherwise, std::size_t most_bytes = SIZE_MAX) const;

  [[noreturn]] void refuse(const std::string& expected) const;

 private:
  const nlohmann::json* value_;
  std::string path_;
};

}  // namespace razorkv::server
