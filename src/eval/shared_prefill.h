// One exact prefill that many policies share, those included that select rows by its attention.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "engine/engine.h"
#include "engine/prefill.h"
#include "engine/prompt_attention.h"
#include "razorkv/policy.h"

namespace razorkv {

/// Owns the uncompressed sequence; sets the engine's observer during feed() only. Copying is a fork: the copy goes on
/// by itself, for example with one of several questions that are to be part of the prompt.
class SharedPrefill {
 public:
  /// Records what `policies` need, and nothing where they need nothing.
  SharedPrefill(Engine& engine, std::span<const Policy> policies);

  /// Appends to the prompt; logits of the last token, valid until the engine's next call. Throws as prefill(); after an
  /// exception policies that select rows can no longer be compressed.
  std::span<const float> feed(std::span<const Token> tokens, std::int64_t micro_batch,
                              const PrefillProgress& progress = {});

  const KvSequence& whole() const { return whole_; }
  /// A compressed fork under `policy`, one of the constructor's. Throws InvalidArgument, OutOfMemory.
  KvSequence compressed(const Policy& policy) const;

 private:
  Engine& engine_;
  KvSequence whole_;
  std::optional<PromptAttention> attention_;
};

}  // namespace razorkv
