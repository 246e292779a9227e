// Feeding known tokens and seeing the distribution after each.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "engine/engine.h"

namespace razorkv {

/// Index of the token among those fed, and the logits [vocabulary] that follow it, valid during the call.
using SeeLogits = std::function<void(std::int64_t index, std::span<const float> logits)>;

/// Appends `tokens` in micro-batches and shows the logits of those from `first_seen` on. A compressed sequence gives
/// the same as one token at a time would. Not all or nothing. Throws as Engine::decode().
void feed_and_see(Engine& engine, KvSequence& sequence, std::span<const Token> tokens, std::int64_t first_seen,
                  std::int64_t micro_batch, const SeeLogits& see);

}  // namespace razorkv
