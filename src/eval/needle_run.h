// Runs a needle task under several policies that share one prefill.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "eval/needle_task.h"
#include "eval/policy_column.h"
#include "eval/policy_facts.h"
#include "razorkv/model.h"
#include "razorkv/session.h"

namespace razorkv {

struct NeedleAnswer {
  std::string text;
  std::vector<Token> tokens;
  bool found = false;
};

struct NeedleColumn : PolicyFacts {
  std::size_t kv_bytes = 0;      ///< allocated after compression
  std::size_t kv_row_bytes = 0;  ///< of these, in rows
  std::size_t kv_end_bytes = 0;  ///< most that any question's sequence held at its end
  double compress_seconds = 0.0;
  double answer_seconds = 0.0;        ///< over all needles, questions included
  std::vector<NeedleAnswer> answers;  ///< in the order of the needles
  std::int64_t found = 0;
};

struct NeedleResult {
  double prefill_seconds = 0.0;
  std::size_t uncompressed_bytes = 0;  ///< allocated by the sequence that keeps everything
  std::vector<NeedleColumn> columns;
};

struct NeedleRunOptions {
  SessionOptions session;       ///< threads, micro-batch, row type
  std::int64_t new_tokens = 9;  ///< greedy, per question
  const std::atomic<bool>* cancel = nullptr;
};

/// Prefill of the context alone, exact and uncompressed, then for every policy: compress, and for every needle its
/// question and the answer, each from the compressed context (protocol P2 of evaluation section 1.1). `progress` counts
/// tokens of the prefill, then answers, scaled to what the whole takes. Throws InvalidArgument for a context longer
/// than the model's, OutOfMemory, Cancelled.
NeedleResult run_needles(const Model& model, const NeedleTask& task, const std::vector<PolicyColumn>& columns,
                         const NeedleRunOptions& options, const Progress& progress = {});

}  // namespace razorkv
