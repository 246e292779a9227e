// What the KV cache keeps: the choice of policy and of protected heads.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "razorkv/model.h"
#include "razorkv/types.h"

namespace razorkv {

enum class PrefillMode : std::uint8_t {
  exact,     ///< prompt rows see everything; local heads are compressed when the prompt ends
  streaming  ///< local heads see sinks, window and compensation token from the first row on
};

struct PolicyOptions {
  /// "full", "razor", "razor-nocomp" (no compensation token), "streaming-llm" (sinks and window in every head),
  /// "random" (as razor, protected heads drawn at random), "duo" (the DuoAttention pattern `profile`, whose own sizes
  /// come before `sinks` and `window`). Those that choose rows by the attention within the prompt, for comparison:
  /// "snapkv", "pyramidkv", "h2o" (in every head), "razor+snapkv", "razor+h2o" (in the protected heads of razor). A
  /// session cannot compress under them; the evaluation records what they need.
  std::string policy = "razor";
  /// Protected KV heads: "paper", "safe", "wide", "INDUCTION+ECHO" shares such as "0.3+0.02", a list "LAYER:HEAD,...",
  /// "all", "none", "random:SEED" (also :COUNT or :SHARES), "lists" (of the JSON file `profile`).
  std::string heads = "wide";
  std::int64_t sinks = 4;
  std::int64_t window = 4000;       ///< rows, floor of the window
  std::int64_t window_divisor = 5;  ///< window(n) = max(window, n / divisor); 0 = fixed
  PrefillMode prefill = PrefillMode::exact;
  std::string profile;         ///< path of a head profile or of a pattern to import; empty = look it up
  bool create_profile = true;  ///< make and keep a profile when none is found
  /// Bytes of the rows kept at `budget_tokens` of context; a policy that takes more gets a narrower window, then fewer
  /// protected heads, until it fits. 0 = no limit.
  std::int64_t budget_bytes = 0;
  std::int64_t budget_tokens = 0;
  /// The same as a share of the uncompressed cache at `budget_tokens`, above 0 and up to 1. 0 = no limit.
  double budget_share = 0.0;
  /// Rows that each head keeps of the prompt where a policy chooses rows; 0 = what the byte budget allows.
  std::int64_t rows = 0;
  /// Of snapkv and pyramidkv: last rows of the prompt that vote, up to 64, and rows pooled into a vote (odd), by mean
  /// or largest. 0 = as published: 32 and 5 by mean for snapkv, 64 and 5 by mean for pyramidkv.
  std::int64_t observation_window = 0;
  std::int64_t pooling_kernel = 0;
  bool max_pooling = false;
  KvType kv_type = KvType::f16;  ///< row type that the budget is counted in
  std::uint64_t seed = 0;        ///< of "random"
};

/// A policy for one model, ready to use. Shared handle.
class Policy {
 public:
  /// Everything in every head.
  static Policy full(const Model& model);
  /// Resolves the options, finding or making the head profile where they need one (`progress` then reports on it).
  /// Throws InvalidArgument, FileError, Cancelled.
  static Policy make(const Model& model, const PolicyOptions& options, const Progress& progress = {});

  /// For people: "razor: 23 of 48 KV heads kept whole (wide), others 4 sinks, window max(4000, n/5), compensation
  /// token".
  std::string description() const;
  const std::string& name() const;
  std::int64_t protected_heads() const;

  struct Impl;
  const std::shared_ptr<const Impl>& impl() const { return impl_; }
  explicit Policy(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}

 private:
  std::shared_ptr<const Impl> impl_;
};

}  // namespace razorkv
