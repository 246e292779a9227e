// What a vocabulary's metadata must be before libllama sees them: it ends the process on some that are not.
#pragma once

#include "model/gguf_file.h"

namespace razorkv {

/// Throws UnsupportedModel for a kind of vocabulary that this engine does not use, and FileError for metadata of a
/// wrong type, arrays of unequal length, two tokens with one text, and a count of tokens unlike the embedding's rows.
void check_vocabulary(const GgufFile& file);

}  // namespace razorkv
