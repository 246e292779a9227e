// What a public Policy holds.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "cache/kv_policy.h"
#include "razorkv/policy.h"

namespace razorkv {

struct Policy::Impl {
  std::shared_ptr<const KvPolicy> rules;
  std::string description;
  std::int64_t protected_heads = 0;  ///< KV heads outside sliding layers that keep everything
};

}  // namespace razorkv
