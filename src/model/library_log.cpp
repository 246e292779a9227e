#include "model/library_log.h"

#include <ggml.h>
#include <llama.h>

#include <mutex>

namespace razorkv {
namespace {

void drop(ggml_log_level /*level*/, const char* /*text*/, void* /*user*/) {}

}  // namespace

void silence_library_logs() {
  static std::once_flag once;
  std::call_once(once, [] {
    ggml_log_set(drop, nullptr);
    llama_log_set(drop, nullptr);
  });
}

}  // namespace razorkv
