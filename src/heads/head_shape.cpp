#include "heads/head_shape.h"

#include <fmt/format.h>

#include <algorithm>

#include "razorkv/error.h"

namespace razorkv {
namespace {

std::vector<std::vector<double>> group_maxima(const HeadShape& shape, const std::vector<std::vector<double>>& scores) {
  if (scores.size() != shape.layers.size()) {
    throw InvalidArgument(fmt::format("head scores: expected {} layers, found {}", shape.layers.size(), scores.size()));
  }
  std::vector<std::vector<double>> maxima(scores.size());
  for (std::size_t layer = 0; layer < scores.size(); ++layer) {
    const LayerHeads& heads = shape.layers[layer];
    if (static_cast<std::int64_t>(scores[layer].size()) != heads.heads) {
      throw InvalidArgument(fmt::format("head scores: expected {} query heads in layer {}, found {}", heads.heads,
                                        layer, scores[layer].size()));
    }
    const std::int64_t group = heads.heads / heads.kv_heads;
    for (std::int64_t kv_head = 0; kv_head < heads.kv_heads; ++kv_head) {
      const auto first = scores[layer].begin() + kv_head * group;
      maxima[layer].push_back(*std::max_element(first, first + group));
    }
  }
  return maxima;
}

}  // namespace

HeadShape HeadShape::of(const Config& config) {
  HeadShape shape;
  shape.head_width = config.head_width;
  shape.sliding_window = config.sliding_window;
  for (const LayerConfig& layer : config.layers) shape.layers.push_back({layer.heads, layer.kv_heads, layer.sliding});
  return shape;
}

std::vector<HeadId> HeadShape::eligible() const {
  std::vector<HeadId> heads;
  for (std::size_t layer = 0; layer < layers.size(); ++layer) {
    if (layers[layer].sliding) continue;
    for (std::int64_t kv_head = 0; kv_head < layers[layer].kv_heads; ++kv_head) {
      heads.push_back({static_cast<std::int64_t>(layer), kv_head});
    }
  }
  return heads;
}

bool HeadShape::contains(HeadId head) const {
  return head.layer >= 0 && head.layer < static_cast<std::int64_t>(layers.size()) && head.kv_head >= 0 &&
         head.kv_head < layers[static_cast<std::size_t>(head.layer)].kv_heads;
}

KvHeadScores kv_head_scores(const HeadShape& shape, const HeadScores& scores) {
  return {group_maxima(shape, scores.induction), group_maxima(shape, scores.echo)};
}

}  // namespace razorkv
