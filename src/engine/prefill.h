// Appending many tokens to one sequence in micro-batches.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "engine/engine.h"

namespace razorkv {

/// Called after each micro-batch with the tokens done and in all; false stops.
using PrefillProgress = std::function<bool(std::int64_t done, std::int64_t total)>;

/// Appends `tokens` (at least one) in micro-batches of at most `micro_batch`; logits [vocabulary] of the last token,
/// valid until the engine's next call. All or nothing: on any exception, Cancelled included, the sequence is as before.
std::span<const float> prefill(Engine& engine, KvSequence& sequence, std::span<const Token> tokens,
                               std::int64_t micro_batch, const PrefillProgress& progress = {});

}  // namespace razorkv
