#include "heads/head_scores.h"

#include <algorithm>
#include <cmath>

namespace razorkv {
namespace {

double probability(const float* q, const float* k, std::int64_t width, const ScoredRows& rows, float lse) {
  double logit = 0.0;
  for (std::int64_t i = 0; i < width; ++i) logit += static_cast<double>(q[i]) * static_cast<double>(k[i]);
  logit *= static_cast<double>(rows.scale);
  if (rows.soft_cap > 0.0F) {
    const double cap = static_cast<double>(rows.soft_cap);
    logit = cap * std::tanh(logit / cap);
  }
  return std::exp(logit - static_cast<double>(lse));
}

}  // namespace

HeadScoreSum::HeadScoreSum(HeadShape shape, const ScoringPrompt& prompt)
    : shape_(std::move(shape)), prefix_(prompt.prefix), block_(prompt.block), repeats_(prompt.repeats) {
  for (const LayerHeads& layer : shape_.layers) {
    induction_.emplace_back(static_cast<std::size_t>(layer.heads), 0.0);
    echo_.emplace_back(static_cast<std::size_t>(layer.heads), 0.0);
  }
}

void HeadScoreSum::add(const ScoredRows& rows, std::int64_t ith, std::int64_t nth) {
  const LayerHeads& layer = shape_.layers[static_cast<std::size_t>(rows.layer)];
  std::vector<double>& induction = induction_[static_cast<std::size_t>(rows.layer)];
  std::vector<double>& echo = echo_[static_cast<std::size_t>(rows.layer)];
  const std::int64_t group = layer.heads / layer.kv_heads;
  const std::int64_t width = shape_.head_width;
  const std::int64_t first = std::max(rows.begin, prefix_ + block_);
  std::vector<float> key(static_cast<std::size_t>(width));

  for (std::int64_t kv_head = ith; kv_head < layer.kv_heads; kv_head += nth) {
    const auto add_key = [&](std::int64_t position, std::int64_t key_position, std::vector<double>& sums) {
      rows.read_key(kv_head, key_position, key.data());
      for (std::int64_t head = kv_head * group; head < (kv_head + 1) * group; ++head) {
        const std::int64_t row = (position - rows.begin) * layer.heads + head;
        sums[static_cast<std::size_t>(head)] +=
            probability(rows.q + row * width, key.data(), width, rows, rows.lse[row]);
      }
    };
    for (std::int64_t position = first; position < rows.begin + rows.rows; ++position) {
      for (std::int64_t copy = position - block_; copy >= prefix_; copy -= block_) {
        add_key(position, copy, echo);
        add_key(position, copy + 1, induction);
      }
    }
  }
}

HeadScores HeadScoreSum::mean() const {
  const auto rows = static_cast<double>((repeats_ - 1) * block_);
  HeadScores means{induction_, echo_};
  for (auto* scores : {&means.induction, &means.echo}) {
    for (std::vector<double>& layer : *scores) {
      for (double& score : layer) score /= rows;
    }
  }
  return means;
}

HeadScores mean_scores(const std::vector<HeadScores>& scores) {
  HeadScores mean = scores.front();
  const auto average = [&](std::vector<std::vector<double>> HeadScores::*kind) {
    for (std::size_t layer = 0; layer < (mean.*kind).size(); ++layer) {
      for (std::size_t head = 0; head < (mean.*kind)[layer].size(); ++head) {
        double sum = 0.0;
        for (const HeadScores& one : scores) sum += (one.*kind)[layer][head];
        (mean.*kind)[layer][head] = sum / static_cast<double>(scores.size());
      }
    }
  };
  average(&HeadScores::induction);
  average(&HeadScores::echo);
  return mean;
}

}  // namespace razorkv
