#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "heads/head_scores.h"
#include "heads/profile_report.h"
#include "razorkv/error.h"

namespace razorkv {
namespace {

std::vector<double> average_ranks(std::span<const double> values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  std::vector<double> ranks(values.size());
  for (std::size_t begin = 0; begin < order.size();) {
    std::size_t end = begin + 1;
    while (end < order.size() && values[order[end]] == values[order[begin]]) ++end;
    const double rank = 0.5 * static_cast<double>(begin + end - 1);
    for (std::size_t i = begin; i < end; ++i) ranks[order[i]] = rank;
    begin = end;
  }
  return ranks;
}

std::vector<double> eligible_scores(const HeadShape& shape, const std::vector<std::vector<double>>& scores) {
  std::vector<double> values;
  for (const HeadId head : shape.eligible()) {
    values.push_back(scores[static_cast<std::size_t>(head.layer)][static_cast<std::size_t>(head.kv_head)]);
  }
  return values;
}

}  // namespace

double spearman(std::span<const double> first, std::span<const double> second) {
  if (first.size() != second.size()) throw InvalidArgument("rank correlation: expected two lists of one length");
  const std::vector<double> a = average_ranks(first);
  const std::vector<double> b = average_ranks(second);
  const double mean = 0.5 * (static_cast<double>(a.size()) - 1.0);
  double product = 0.0, square_a = 0.0, square_b = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    product += (a[i] - mean) * (b[i] - mean);
    square_a += (a[i] - mean) * (a[i] - mean);
    square_b += (b[i] - mean) * (b[i] - mean);
  }
  if (square_a == 0.0 || square_b == 0.0) return std::numeric_limits<double>::quiet_NaN();
  return product / std::sqrt(square_a * square_b);
}

SetOverlap head_overlap(std::span<const HeadId> first, std::span<const HeadId> second) {
  std::vector<HeadId> both;
  std::set_intersection(first.begin(), first.end(), second.begin(), second.end(), std::back_inserter(both));
  SetOverlap overlap;
  overlap.first = static_cast<std::int64_t>(first.size());
  overlap.second = static_cast<std::int64_t>(second.size());
  overlap.both = static_cast<std::int64_t>(both.size());
  const std::int64_t either = overlap.first + overlap.second - overlap.both;
  if (either > 0) overlap.jaccard = static_cast<double>(overlap.both) / static_cast<double>(either);
  return overlap;
}

ProfileComparison compare_profiles(const HeadProfile& first, std::span<const HeadId> first_chosen,
                                   const HeadProfile& second, std::span<const HeadId> second_chosen) {
  const HeadShape& shape = first.model.shape;
  if (shape != second.model.shape) {
    throw InvalidArgument("profiles of different models cannot be compared: layers or heads differ");
  }
  if (!first.scores || !second.scores) throw InvalidArgument("both profiles must have scores to be compared");
  const KvHeadScores a = kv_head_scores(shape, *first.scores);
  const KvHeadScores b = kv_head_scores(shape, *second.scores);
  return {spearman(eligible_scores(shape, a.induction), eligible_scores(shape, b.induction)),
          spearman(eligible_scores(shape, a.echo), eligible_scores(shape, b.echo)),
          head_overlap(first_chosen, second_chosen)};
}

HeadProfile mean_profile(std::span<const HeadProfile> profiles) {
  HeadProfile mean = profiles.front();
  mean.plans.clear();
  mean.scoring->seeds.clear();
  std::vector<HeadScores> scores;
  for (const HeadProfile& profile : profiles) {
    mean.scoring->seeds.insert(mean.scoring->seeds.end(), profile.scoring->seeds.begin(), profile.scoring->seeds.end());
    scores.push_back(*profile.scores);
  }
  mean.scores = mean_scores(scores);
  return mean;
}

}  // namespace razorkv
