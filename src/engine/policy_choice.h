// What a policy keeps, in the two numbers that a byte budget may change: the heads kept whole and the others' window.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cache/head_rule.h"
#include "cache/kv_policy.h"
#include "heads/head_shape.h"

namespace razorkv {

struct PolicyChoice {
  std::vector<HeadId> heads;    ///< kept whole, the most wanted first
  std::string how;              ///< how they were chosen, for people
  HeadRule local;               ///< of the others
  RowSelection selection = {};  ///< in the heads kept whole
};

struct KvBudget {
  std::int64_t bytes = 0;
  std::int64_t tokens = 0;         ///< context at which the bytes are counted
  std::int64_t bytes_per_row = 0;  ///< K and V of one head
};

/// Nominal bytes: rows kept at budget.tokens of context times budget.bytes_per_row.
std::int64_t nominal_bytes(const PolicyChoice& choice, const HeadShape& shape, const KvBudget& budget);

/// Leaves a choice that fits as it is. Else narrows the window down to 1/64 of the context, then gives up heads from
/// the last on, then takes the widest window that fits, and says so in `how`. Throws InvalidArgument with the smallest
/// possible size when nothing fits.
void fit_budget(PolicyChoice& choice, const HeadShape& shape, const KvBudget& budget);

/// The largest selection.rows that fits beside the other heads' rows, at most the context, for a choice with a
/// head kept whole. Throws InvalidArgument when that is less than `least` rows.
void fit_selection(PolicyChoice& choice, const HeadShape& shape, const KvBudget& budget, std::int64_t least);

}  // namespace razorkv
