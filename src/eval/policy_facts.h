// What a policy column keeps, in the facts that every result row carries.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "eval/policy_column.h"
#include "heads/head_shape.h"
#include "razorkv/policy.h"

namespace razorkv {

struct PolicyFacts {
  std::string name;         ///< of the column
  std::string policy;       ///< name of the policy
  std::string description;  ///< for people
  std::vector<HeadId> protected_heads;
  std::int64_t heads = 0;  ///< KV heads that can be protected
  std::int64_t sinks = 0;
  std::int64_t window_floor = 0;  ///< 0 where every head keeps everything
  std::int64_t window_divisor = 0;
  std::int64_t window = 0;  ///< rows at the context's length
  bool compensation = false;
  std::int64_t chosen_rows = 0;  ///< that attention chooses in each of protected_heads; 0: these keep everything
};

/// `tokens`: length of the context that is compressed.
PolicyFacts policy_facts(const PolicyColumn& column, const Policy& policy, const HeadShape& shape, std::int64_t tokens);

/// Fields of evaluation section 1.2: column, policy, description, protected_share, protected_heads, kv_heads, sinks,
/// window_floor, window_divisor, window_rows, compensation_token, chosen_rows.
nlohmann::json policy_facts_json(const PolicyFacts& facts);

/// part / whole; 0 where there is no whole.
double share(std::size_t part, std::size_t whole);

/// "7 of 48", or "7 of 48, 512 rows each" where attention chooses.
std::string heads_text(const PolicyFacts& facts);

/// "1638 = max(1, n/5)", "64", or "everything".
std::string window_text(const PolicyFacts& facts);

}  // namespace razorkv
