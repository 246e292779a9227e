// A plan: what every KV head of a model keeps, and how that was chosen.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "cache/head_rule.h"
#include "heads/head_shape.h"

namespace razorkv {

struct HeadPlan {
  std::string how;                           ///< one line for people: preset, shares, list, importer
  std::vector<std::vector<HeadRule>> rules;  ///< [layer][KV head]
  bool operator==(const HeadPlan&) const = default;
};

/// `chosen` keep everything, the others follow `local`, heads of sliding layers keep the model's own window.
HeadPlan make_plan(const HeadShape& shape, std::span<const HeadId> chosen, const HeadRule& local, std::string how);

/// Heads outside sliding layers that keep everything, in order.
std::vector<HeadId> protected_heads(const HeadShape& shape, const HeadPlan& plan);

}  // namespace razorkv
