// Which heads a model has, as far as choosing among them needs to know, and their scores.
#pragma once

#include <compare>
#include <cstdint>
#include <vector>

#include "model/config.h"

namespace razorkv {

/// One KV head of a model.
struct HeadId {
  std::int64_t layer = 0;
  std::int64_t kv_head = 0;
  auto operator<=>(const HeadId&) const = default;
};

struct LayerHeads {
  std::int64_t heads = 0;     ///< query heads
  std::int64_t kv_heads = 0;  ///< divides heads; query head h reads KV head h / (heads / kv_heads)
  bool sliding = false;       ///< the model's own sliding window: neither protected nor compensated
  bool operator==(const LayerHeads&) const = default;
};

struct HeadShape {
  std::vector<LayerHeads> layers;
  std::int64_t head_width = 0;      ///< elements of one K row
  std::int64_t sliding_window = 0;  ///< rows that sliding layers keep; 0 where there is no such layer

  static HeadShape of(const Config& config);

  /// KV heads that can be chosen: those outside sliding layers, in order of (layer, KV head).
  std::vector<HeadId> eligible() const;
  bool contains(HeadId head) const;

  bool operator==(const HeadShape&) const = default;
};

/// Mean attention per query head, [layer][query head]; definition in algorithm section 3.1.
struct HeadScores {
  std::vector<std::vector<double>> induction;
  std::vector<std::vector<double>> echo;
  bool operator==(const HeadScores&) const = default;
};

/// Scores per KV head, [layer][KV head]: the largest of its group.
struct KvHeadScores {
  std::vector<std::vector<double>> induction;
  std::vector<std::vector<double>> echo;
};

/// Throws InvalidArgument where `scores` has not one value per query head of `shape`.
KvHeadScores kv_head_scores(const HeadShape& shape, const HeadScores& scores);

}  // namespace razorkv
