// Attention that key rows receive, without materialising the matrix.
#pragma once

#include <cstdint>
#include <span>

#include "attention/attention.h"

namespace razorkv {

/// Query rows of one KV head at positions [first, first + rows), each with the log-sum-exp of its logits.
struct WeighingQueries {
  QueryView query;
  std::int64_t first = 0;
  std::int64_t rows = 0;
  const float* lse = nullptr;  ///< of (row r, query head g): lse[r * lse_row_stride + g]
  std::int64_t lse_row_stride = 0;
};

/// sums[j] += sum over query rows at j and later, and over the query heads of the group, of exp(logit - lse) for the
/// key row at position j. `kv`: a head that keeps everything, from position 0; sums: [first + rows] at least. One page
/// of keys is in work at a time; logits in float32, sums in double. Throws std::bad_alloc.
void add_key_weights(const KvHeadView& kv, const WeighingQueries& queries, std::span<double> sums);

}  // namespace razorkv
