// Speed of the products with a model's weights, ours and ggml's.
#pragma once

#include <cstdint>
#include <string>

namespace razorkv::bench {

/// A Markdown table of every kind of layer weight in the file (type and shape) times `tokens` random rows, in one
/// thread, by that thread's CPU time, so that other load disturbs little: the best of `repetitions`. ggml has the
/// weights as it repacks them. Throws FileError, UnsupportedModel, OutOfMemory, InvalidArgument.
std::string matmul_table(const std::string& path, std::int64_t tokens, int repetitions);

}  // namespace razorkv::bench
