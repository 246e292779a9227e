// From options and a head profile to the rule of every KV head.
#pragma once

#include <functional>
#include <optional>

#include "engine/policy_handle.h"
#include "heads/head_shape.h"
#include "heads/profile.h"
#include "razorkv/policy.h"

namespace razorkv {

/// Gives the model's profile when the options turn out to need scores; throws what keeps it from doing so.
using ProfileSource = std::function<HeadProfile()>;

/// Throws InvalidArgument for options out of range or unknown names, FileError for patterns that cannot be read.
/// `budget_bytes` is met by narrowing the window first (down to 1/64 of budget_tokens), then the protected heads;
/// throws InvalidArgument with the smallest possible size when even that is too much.
Policy::Impl build_policy(const HeadShape& shape, std::int64_t bytes_per_row, const PolicyOptions& options,
                          const ProfileSource& profile);

/// Nominal bytes of a plan at `tokens` of context: rows kept times `bytes_per_row` (K and V of one head).
std::int64_t plan_bytes(const KvPolicy& policy, const HeadShape& shape, std::int64_t tokens,
                        std::int64_t bytes_per_row);

}  // namespace razorkv
