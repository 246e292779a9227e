// What in a well-formed file this engine cannot run.
#pragma once

#include <string>
#include <vector>

#include "model/gguf_file.h"

namespace razorkv {

/// One sentence each, for people; empty where the model can be run. Throws FileError where the metadata is corrupt.
std::vector<std::string> unsupported_features(const GgufFile& gguf);

}  // namespace razorkv
