// Speed of prefill and decode at several depths, beside libllama when wanted.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "razorkv/model.h"
#include "razorkv/policy.h"
#include "razorkv/session.h"
#include "razorkv/types.h"

namespace razorkv::bench {

struct BenchSettings {
  SessionOptions session;                  ///< threads, micro-batch, row type
  std::vector<std::int64_t> prompts{512};  ///< tokens of the pp tests
  std::vector<std::int64_t> answers{128};  ///< tokens of the tg tests, fed one at a time
  std::vector<std::int64_t> depths{0};     ///< tokens that are there before a test begins
  int repetitions = 5;
  std::string llama;  ///< path of the model, to run libllama as well; empty = razorkv alone
};

struct BenchTest {
  bool prefill = false;
  std::int64_t tokens = 0;
  std::int64_t depth = 0;

  /// "pp512", "tg128 @ d4096".
  std::string name() const;
};

struct BenchRow {
  BenchTest test;
  std::vector<double> speed;                 ///< tokens/s, one a repetition
  std::array<std::vector<double>, 2> llama;  ///< libllama's, flash attention off and on; empty when it did not run
  std::size_t kv_bytes = 0;                  ///< allocated at the end of the test
  double kv_read = 0.0;                      ///< bytes of rows that one decoded token reads on average; 0 for pp
};

struct BenchResult {
  std::vector<BenchRow> rows;
  /// |difference| / |libllama's| of the logits after the first prompt: ours, libllama's with flash attention.
  std::array<double, 2> logit_distance{};
};

/// Random tokens fill each depth in turn, once for all tests; each repetition goes on from a snapshot. The rows of a
/// repetition alternate with libllama's. Throws InvalidArgument (no tests, numbers out of range, more than the model's
/// context), Cancelled, Error.
BenchResult run_bench(const Model& model, const Policy& policy, const BenchSettings& settings,
                      const Progress& progress);

}  // namespace razorkv::bench
