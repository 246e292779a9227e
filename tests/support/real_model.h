// Comparison of the decoder graph with libllama on a real model, teacher-forced over running text.
#pragma once

#include <cstdint>
#include <string>

#include "support/divergence.h"

namespace razorkv::test {

struct Comparison {
  Divergence divergence;
  double worst_row_error = 0.0;
};

/// Feeds the first `count` tokens of `text` to both, in one micro-batch, with exact attention on our side and f32 KV on
/// libllama's.
Comparison compare_with_libllama(const std::string& model, const std::string& text, std::int64_t count);

/// The same with all weights of the model as float32, in a temporary file.
Comparison compare_float_copy_with_libllama(const std::string& model, const std::string& text, std::int64_t count);

}  // namespace razorkv::test
