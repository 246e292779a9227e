// What compression changes in the distribution of the next token: prefix, compress, score (evaluation section 6).
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "eval/perplexity/divergence.h"
#include "eval/perplexity/text_chunks.h"
#include "eval/policy_facts.h"
#include "razorkv/model.h"
#include "razorkv/session.h"

namespace razorkv {

struct KldOptions {
  SessionOptions session;         ///< threads, micro-batch of the prefix, row type
  std::int64_t score_batch = 64;  ///< tokens scored at once; the result does not depend on it
  std::string base_file;          ///< compare with this file's log-probabilities; empty: with the uncompressed engine
  std::string save_base;          ///< write the uncompressed engine's log-probabilities; empty: nowhere
  const std::atomic<bool>* cancel = nullptr;
};

/// Distances from the compression point at which tokens are counted apart: [0, 64), [64, 512), [512, 4096), [4096,
/// ...).
inline constexpr std::array<std::int64_t, 4> kDistances = {0, 64, 512, 4096};

struct KldColumn : PolicyFacts {
  DivergenceSummary all;
  std::array<DivergenceSummary, kDistances.size()> by_distance;
  std::size_t kv_bytes = 0;      ///< allocated after compression; of the last chunk, as the others
  std::size_t kv_end_bytes = 0;  ///< allocated when the chunk was scored
  double score_seconds = 0.0;    ///< of the forward passes over all scored tokens
};

struct KldResult {
  std::int64_t chunks = 0;
  std::int64_t scored = 0;  ///< tokens, in every column
  double prefill_seconds = 0.0;
  std::size_t uncompressed_bytes = 0;      ///< allocated for the prefix by the sequence that keeps everything
  std::size_t uncompressed_end_bytes = 0;  ///< and at the chunk's end; 0 where it was not run
  std::vector<KldColumn> columns;
};

/// For every chunk: prefill of the first half, exact and shared by all columns; then each column compresses, and the
/// second half goes through its cache, token for token as it stands in the text, beside the uncompressed cache or the
/// base file. Memory: the logits of two score batches, a cache per column. `progress` counts tokens of all passes.
/// Throws InvalidArgument (chunks longer than the model's context, a base file of another vocabulary), FileError,
/// OutOfMemory, Cancelled; the file to be written is then not there.
KldResult run_kld(const Model& model, const TextChunks& chunks, const std::vector<PolicyColumn>& columns,
                  const KldOptions& options, const Progress& progress = {});

}  // namespace razorkv
