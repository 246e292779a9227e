// A copy of a GGUF with all weights as float32: then both engines compute in float32 and must agree closely, while with
// quantised weights the activations are rounded to 8 bits and the smallest difference grows from layer to layer.
#pragma once

#include <string>

namespace razorkv::test {

/// Throws std::runtime_error where a file cannot be read or written.
void write_float_copy(const std::string& from, const std::string& to);

}  // namespace razorkv::test
