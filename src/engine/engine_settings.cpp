#include "engine/engine_settings.h"

#include "base/processors.h"

namespace razorkv {

EngineSettings engine_settings(const SessionOptions& options) {
  EngineSettings settings;
  settings.threads = options.threads > 0 ? options.threads : usable_processors();
  settings.threads_batch = options.threads_batch > 0 ? options.threads_batch : settings.threads;
  settings.row_type = options.kv_type == KvType::f32 ? RowType::f32 : RowType::f16;
  settings.kv_budget_bytes = options.kv_budget_bytes;
  return settings;
}

}  // namespace razorkv
