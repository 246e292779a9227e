// From options and a head profile to the rule of every KV head.
#pragma once

#include <cstdint>
#include <functional>

#include "engine/policy_handle.h"
#include "heads/head_shape.h"
#include "heads/profile.h"
#include "razorkv/policy.h"

namespace razorkv {

/// Gives the model's profile when the options turn out to need scores; throws what keeps it from doing so.
using ProfileSource = std::function<HeadProfile()>;

/// `bytes_per_row`: K and V of one head. Throws InvalidArgument for options out of range, unknown names and a budget
/// that is too small (see fit_budget()), FileError for patterns that cannot be read.
Policy::Impl build_policy(const HeadShape& shape, std::int64_t bytes_per_row, const PolicyOptions& options,
                          const ProfileSource& profile);

}  // namespace razorkv
