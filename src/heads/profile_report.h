// Head profiles for people: a table, a picture, and how much two profiles agree.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "heads/profile.h"

namespace razorkv {

/// The `rows` highest KV heads by induction beside those by echo; `chosen` are marked with *. Needs scores.
std::string top_heads_table(const HeadProfile& profile, std::span<const HeadId> chosen, std::int64_t rows);

/// SVG: layers down, KV heads across, induction and echo side by side, `chosen` framed, with legend. Colours follow
/// the viewer's dark or light setting. Needs scores.
std::string heat_map_svg(const HeadProfile& profile, std::span<const HeadId> chosen);

struct SetOverlap {
  std::int64_t first = 0, second = 0;  ///< sizes
  std::int64_t both = 0;
  double jaccard = 1.0;  ///< |both| / |union|; 1 for two empty sets
};
/// Both sorted, without repeats.
SetOverlap head_overlap(std::span<const HeadId> first, std::span<const HeadId> second);

/// Spearman rank correlation, ties with their average rank; NaN where one side is constant or has fewer than 2 values.
/// Throws InvalidArgument for different lengths.
double spearman(std::span<const double> first, std::span<const double> second);

struct ProfileComparison {
  double induction = 0.0;  ///< rank correlation over the KV heads outside sliding layers
  double echo = 0.0;
  SetOverlap chosen;
};
/// Throws InvalidArgument for profiles of different shapes or without scores.
ProfileComparison compare_profiles(const HeadProfile& first, std::span<const HeadId> first_chosen,
                                   const HeadProfile& second, std::span<const HeadId> second_chosen);

/// Scores averaged over profiles of one model, made with different seeds; plans are left out. At least one profile, all
/// with scores.
HeadProfile mean_profile(std::span<const HeadProfile> profiles);

}  // namespace razorkv
