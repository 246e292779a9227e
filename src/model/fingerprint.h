#pragma once

#include <string>

#include "model/config.h"
#include "model/gguf_file.h"

namespace razorkv {

/// 64 hex digits: SHA-256 over architecture, sizes, and of every tensor name, type, shape, place and a sample of its
/// data (start, middle and end). A profile or a saved state carries it, to be refused by another model.
std::string model_fingerprint(const GgufFile& gguf, const Config& config);

}  // namespace razorkv
