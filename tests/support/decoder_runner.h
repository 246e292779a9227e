// Computes the decoder's graph with a hook, without the engine.
#pragma once

#include <cstdint>
#include <vector>

#include "model/decoder_graph.h"
#include "model/loaded_model.h"

namespace razorkv::test {

/// Logits of the rows `wanted` of the batch (all rows where it is empty), [rows, vocabulary]. The batch stands at
/// positions first, first + 1, ...
std::vector<float> run_decoder(const LoadedModel& model, AttentionHook& hook, const std::vector<std::int32_t>& tokens,
                               std::int64_t first, const std::vector<std::int32_t>& wanted = {}, int threads = 1);

/// Feeds a sequence from its start in micro-batches of `size` tokens; logits of all rows, [tokens, vocabulary].
std::vector<float> run_in_pieces(const LoadedModel& model, const std::vector<std::int32_t>& tokens, std::int64_t size,
                                 int threads = 1);

/// `count` token ids below `vocabulary`, from a seed.
std::vector<std::int32_t> random_tokens(std::int64_t count, std::int64_t vocabulary, std::uint32_t seed);

/// Greatest over the rows of |found - expected| / |expected| (Euclidean norms). Infinite where sizes differ or
/// anything is not finite.
double worst_row_error(const std::vector<float>& found, const std::vector<float>& expected, std::int64_t row);

}  // namespace razorkv::test
