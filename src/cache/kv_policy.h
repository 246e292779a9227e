// What every KV head of a model keeps, and from when on.
#pragma once

#include <string>
#include <vector>

#include "cache/head_rule.h"

namespace razorkv {

struct KvPolicy {
  std::string name = "full";
  /// Rules apply from the first token on; otherwise from KvSequence::compress() on (the end of the prompt).
  bool streaming = false;
  std::vector<std::vector<HeadRule>> rules;  ///< [layer][KV head]

  bool keeps_everything() const {
    for (const auto& layer : rules) {
      for (const HeadRule& rule : layer) {
        if (!rule.everything) return false;
      }
    }
    return true;
  }
  bool operator==(const KvPolicy&) const = default;
};

}  // namespace razorkv
