// Errors as clients see them: an HTTP status and OpenAI's error object.
#pragma once

#include <exception>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

namespace razorkv::server {

class ApiError : public std::runtime_error {
 public:
  ApiError(int status, const std::string& message, std::string param = {}, std::string code = {})
      : std::runtime_error(message), status_(status), param_(std::move(param)), code_(std::move(code)) {}

  int status() const { return status_; }
  const std::string& param() const { return param_; }  ///< empty: null
  const std::string& code() const { return code_; }    ///< empty: null
  /// {"error": {"message", "type", "param", "code"}}.
  nlohmann::json body() const;

 private:
  int status_;
  std::string param_;
  std::string code_;
};

/// What an exception of the library is to a client.
ApiError to_api_error(const std::exception_ptr& error);

}  // namespace razorkv::server
