// Head patterns made elsewhere (algorithm section 3.4).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "heads/head_plan.h"
#include "heads/head_shape.h"

namespace razorkv {

/// DuoAttention gates: how much each KV head wants the whole context.
struct DuoPattern {
  std::vector<std::vector<double>> gates;  ///< [layer][KV head], in [0, 1]
  std::optional<std::int64_t> sinks;       ///< "sink_size" of config.json, where there is one
  std::optional<std::int64_t> window;      ///< "recent_size"
};

/// `path`: a folder with config.json and full_attention_heads.tsv, or the .tsv file alone (then sizes are absent).
/// Gates are clipped to [0, 1] as upstream does. Throws FileError for missing files, ragged or empty tables, and
/// anything that is not a number.
DuoPattern read_duo_pattern(const std::string& path);

/// KV heads that attend to everything at this sparsity (share of heads that do not). Upstream's threshold is the
/// quantile `sparsity` of the gates, ties broken by noise; here ties go to the lower layer, then the lower head.
/// n - ceil(sparsity * (n - 1)) heads; none from sparsity 1 on. Throws InvalidArgument for a sparsity outside [0, 1] or
/// a table that does not fit the model.
std::vector<HeadId> duo_full_heads(const DuoPattern& pattern, const HeadShape& shape, double sparsity);

/// The pattern as a plan: full heads keep everything, the others sinks + a fixed window, without compensation.
/// `sinks` and `window` replace the pattern's own sizes; throws InvalidArgument where neither gives a size.
HeadPlan duo_plan(const DuoPattern& pattern, const HeadShape& shape, double sparsity,
                  std::optional<std::int64_t> sinks = {}, std::optional<std::int64_t> window = {});

/// KV heads by kind, in order.
struct HeadLists {
  std::vector<HeadId> induction;  ///< "prefix_matching"
  std::vector<HeadId> echo;       ///< "copying"
  std::vector<HeadId> all() const;
};

/// JSON {"prefix_matching": {"LAYER": [KV heads], ...}, "copying": {...}} (either may be absent), or one plain
/// {"LAYER": [KV heads], ...} taken as induction. Throws FileError, also for heads that the model has not.
HeadLists read_head_lists(const std::string& path, const HeadShape& shape);

}  // namespace razorkv
