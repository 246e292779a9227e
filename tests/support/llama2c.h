// Converts the .bin models of llama2.c (seven int32 of sizes, then float32 weights) into GGUF.
#pragma once

#include <string>

#include "support/tiny_gguf.h"

namespace razorkv::test {

/// Throws std::runtime_error where the file's size is not what its header implies.
TinyGguf read_llama2c(const std::string& path);

}  // namespace razorkv::test
