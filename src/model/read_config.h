// GGUF metadata -> checked Config.
#pragma once

#include "model/architecture.h"
#include "model/config.h"
#include "model/gguf_file.h"

namespace razorkv {

/// Throws FileError (a key missing, of another type, out of range, or at odds with another) naming the key, what was
/// expected and what was found; UnsupportedModel where the architecture or the kind of RoPE scaling is unknown.
Config read_config(const GgufFile& gguf);

/// Row of the architecture table that the file names. Throws UnsupportedModel.
const Architecture& require_architecture(const GgufFile& gguf);

/// The RoPE part; the rest of `config` must be there.
RopeConfig read_rope(const GgufFile& gguf, const Architecture& architecture, const Config& config);

}  // namespace razorkv
