#include "server/api_error.h"

#include <new>

#include "razorkv/error.h"
#include "server/generation.h"

namespace razorkv::server {
namespace {

const char* error_type(int status) {
  if (status == 401) return "authentication_error";
  if (status == 403) return "permission_error";
  if (status == 404) return "not_found_error";
  if (status == 429) return "rate_limit_error";
  return status < 500 ? "invalid_request_error" : "server_error";
}

}  // namespace

nlohmann::json ApiError::body() const {
  const auto or_null = [](const std::string& text) { return text.empty() ? nlohmann::json() : nlohmann::json(text); };
  return {{"error",
           {{"message", what()}, {"type", error_type(status_)}, {"param", or_null(param_)}, {"code", or_null(code_)}}}};
}

ApiError to_api_error(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const ApiError& api) {
    return api;
  } catch (const Overloaded& e) {
    return {429, e.what(), {}, "queue_full"};
  } catch (const ShuttingDown& e) {
    return {503, e.what(), {}, "shutting_down"};
  } catch (const TimedOut& e) {
    return {504, e.what(), {}, "timeout"};
  } catch (const ContextFull& e) {
    return {400, e.what(), "messages", "context_length_exceeded"};
  } catch (const InvalidArgument& e) {
    return {400, e.what()};
  } catch (const UnsupportedModel& e) {
    return {400, e.what()};
  } catch (const Cancelled& e) {
    return {503, e.what(), {}, "cancelled"};
  } catch (const OutOfBudget& e) {
    return {503, e.what(), {}, "kv_budget"};
  } catch (const OutOfMemory& e) {
    return {503, e.what(), {}, "out_of_memory"};
  } catch (const std::bad_alloc&) {
    return {503, "the server has not enough memory for this request", {}, "out_of_memory"};
  } catch (const std::exception& e) {
    return {500, e.what()};
  }
}

}  // namespace razorkv::server
