// Perplexity as llama.cpp's perplexity program defines it.
#pragma once

#include <atomic>
#include <cstdint>

#include "eval/perplexity/sample_sums.h"
#include "eval/perplexity/text_chunks.h"
#include "razorkv/model.h"
#include "razorkv/session.h"

namespace razorkv {

struct PplOptions {
  SessionOptions session;  ///< threads, micro-batch, row type
  const std::atomic<bool>* cancel = nullptr;
};

struct PplResult {
  std::int64_t chunks = 0;
  std::int64_t scored = 0;  ///< tokens
  Estimate nll;             ///< negative log-likelihood of a token, nats
  Estimate perplexity;
  double seconds = 0.0;
};

/// Scores the second half of every chunk, each from an empty cache that keeps everything. `progress` counts chunks.
/// Throws InvalidArgument for chunks longer than the model's context, OutOfMemory, Cancelled.
PplResult run_perplexity(const Model& model, const TextChunks& chunks, const PplOptions& options,
                         const Progress& progress = {});

}  // namespace razorkv
