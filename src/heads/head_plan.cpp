#include "heads/head_plan.h"

namespace razorkv {

HeadPlan make_plan(const HeadShape& shape, std::span<const HeadId> chosen, const HeadRule& local, std::string how) {
  HeadPlan plan{std::move(how), {}};
  for (const LayerHeads& layer : shape.layers) {
    const HeadRule rule = layer.sliding ? HeadRule::sliding(shape.sliding_window) : local;
    plan.rules.emplace_back(static_cast<std::size_t>(layer.kv_heads), rule);
  }
  for (const HeadId head : chosen) {
    plan.rules[static_cast<std::size_t>(head.layer)][static_cast<std::size_t>(head.kv_head)] = HeadRule::all();
  }
  return plan;
}

std::vector<HeadId> protected_heads(const HeadShape& shape, const HeadPlan& plan) {
  std::vector<HeadId> heads;
  for (const HeadId head : shape.eligible()) {
    if (plan.rules[static_cast<std::size_t>(head.layer)][static_cast<std::size_t>(head.kv_head)].everything) {
      heads.push_back(head);
    }
  }
  return heads;
}

}  // namespace razorkv
