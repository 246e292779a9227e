// Which rows a selecting policy keeps, from the attention of one prefill.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cache/kv_sequence.h"
#include "engine/prompt_attention.h"

namespace razorkv {

/// For KvSequence::compress(). `sequence` is uncompressed, follows a policy that selects rows, and holds just the rows
/// that `attention` recorded. A head with no more rows than its share keeps all. Ties go to the lower position.
/// Throws InvalidArgument where the record is of other rows or lacks what the policy needs, OutOfMemory.
RowChoice choose_rows(const PromptAttention& attention, const KvSequence& sequence);

/// Votes of neighbours in one: mean (rows beyond the ends count as 0) or largest of the `kernel` rows around each.
std::vector<double> pool_votes(std::span<const double> votes, std::int64_t kernel, bool max_pool);

/// Positions of the `count` largest votes, rising.
std::vector<std::int64_t> heaviest_rows(std::span<const double> votes, std::int64_t count);

/// PyramidKV: rows per layer, from the first layer's most down in equal steps, `rows` in the mean, none above `tokens`.
/// The least is 1/20 of the mean beside the window (beta of the paper), or what the cap on the most leaves. Steps are
/// rounded so that the sum never exceeds layers * rows.
std::vector<std::int64_t> pyramid_rows(std::int64_t rows, std::int64_t window, std::int64_t layers,
                                       std::int64_t tokens);

}  // namespace razorkv
