#include "eval/policy_facts.h"

#include <fmt/format.h>

#include <cstddef>

#include "engine/policy_handle.h"

namespace razorkv {

PolicyFacts policy_facts(const PolicyColumn& column, const Policy& policy, const HeadShape& shape,
                         std::int64_t tokens) {
  PolicyFacts out;
  out.name = column.name;
  out.policy = policy.name();
  out.description = policy.description();
  const std::vector<HeadId> eligible = shape.eligible();
  out.chosen_rows = policy.impl()->rules->selection.rows;
  out.heads = static_cast<std::int64_t>(eligible.size());
  for (const HeadId id : eligible) {
    const HeadRule& rule =
        policy.impl()->rules->rules[static_cast<std::size_t>(id.layer)][static_cast<std::size_t>(id.kv_head)];
    if (rule.everything) {
      out.protected_heads.push_back(id);
      continue;
    }
    out.sinks = rule.sinks;
    out.window_floor = rule.window_floor;
    out.window_divisor = rule.window_divisor;
    out.window = rule.window(tokens);
    out.compensation = rule.compensate;
  }
  return out;
}

double share(std::size_t part, std::size_t whole) {
  return whole == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(whole);
}

nlohmann::json policy_facts_json(const PolicyFacts& facts) {
  nlohmann::json heads = nlohmann::json::array();
  for (const HeadId id : facts.protected_heads) heads.push_back({id.layer, id.kv_head});
  return {{"column", facts.name},
          {"policy", facts.policy},
          {"description", facts.description},
          {"protected_share", share(facts.protected_heads.size(), static_cast<std::size_t>(facts.heads))},
          {"protected_heads", heads},
          {"kv_heads", facts.heads},
          {"sinks", facts.sinks},
          {"window_floor", facts.window_floor},
          {"window_divisor", facts.window_divisor},
          {"window_rows", facts.window},
          {"compensation_token", facts.compensation},
          {"chosen_rows", facts.chosen_rows}};
}

std::string heads_text(const PolicyFacts& facts) {
  const std::string heads = fmt::format("{} of {}", facts.protected_heads.size(), facts.heads);
  return facts.chosen_rows > 0 ? fmt::format("{}, {} rows each", heads, facts.chosen_rows) : heads;
}

std::string window_text(const PolicyFacts& facts) {
  if (facts.window_floor == 0) return facts.chosen_rows > 0 ? "-" : "everything";
  if (facts.window_divisor == 0) return fmt::format("{}", facts.window);
  return fmt::format("{} = max({}, n/{})", facts.window, facts.window_floor, facts.window_divisor);
}

}  // namespace razorkv
