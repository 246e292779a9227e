// Engine settings of a session's options.
#pragma once

#include "engine/engine.h"
#include "razorkv/session.h"

namespace razorkv {

/// Threads (0 = all processors that may be used; for batches: as for single tokens), row type and byte limit.
EngineSettings engine_settings(const SessionOptions& options);

}  // namespace razorkv
