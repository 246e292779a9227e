// Induction and echo scores, summed up while the scoring prompt runs. Attention is never materialised: a row needs its
// log-sum-exp and the logits of the few keys that count.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "heads/head_shape.h"
#include "heads/scoring_prompt.h"

namespace razorkv {

/// Query rows of one layer at positions [begin, begin + rows) of the scoring prompt (its prefix counts as a position).
struct ScoredRows {
  std::int64_t layer = 0;
  std::int64_t begin = 0;
  std::int64_t rows = 0;
  const float* q = nullptr;    ///< [rows, heads, width]
  const float* lse = nullptr;  ///< [rows, heads], log of the sum of exp(logit) over every key the row sees
  float scale = 1.0F;          ///< logit = soft_cap(scale * q.k)
  float soft_cap = 0.0F;       ///< 0 = none
  /// Writes key row `position` of KV head `kv_head`, [width], in the same form (before or after RoPE) as q.
  std::function<void(std::int64_t kv_head, std::int64_t position, float* k)> read_key;
};

class HeadScoreSum {
 public:
  HeadScoreSum(HeadShape shape, const ScoringPrompt& prompt);

  /// Adds the rows' attention to the earlier copies of their tokens. Work is split by KV head: call it once from each
  /// of `nth` threads with its own `ith`. The prefix is no row and no column here, but it is part of the softmax.
  void add(const ScoredRows& rows, std::int64_t ith, std::int64_t nth);

  /// Means over the rows that have an earlier copy, (repeats - 1) * block of them.
  HeadScores mean() const;

 private:
  HeadShape shape_;
  std::int64_t prefix_, block_, repeats_;
  std::vector<std::vector<double>> induction_, echo_;  // [layer][query head]
};

/// Element-wise mean, for several seeds. All of one shape; at least one.
HeadScores mean_scores(const std::vector<HeadScores>& scores);

}  // namespace razorkv
