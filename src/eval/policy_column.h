// One column of an evaluation: a policy in a few words, such as "razor:safe".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "razorkv/policy.h"

namespace razorkv {

struct PolicyColumn {
  std::string name;  ///< as given
  PolicyOptions options;
};

/// Words separated by commas:
///   full, none, all               everything kept; razor with no head, or all heads, kept whole
///   razor:HEADS                   HEADS as of --heads; a list of heads has ";" between them: razor:16:0;9:1
///   razor-nocomp:HEADS            the same without compensation token
///   random:COUNT:SEED             COUNT heads drawn at random; COUNT a number or a preset such as paper
///   streaming-llm                 sinks and window in every head
/// `base` gives sinks, window, profile and row type. Throws InvalidArgument for an empty list, an unknown word and a
/// column that comes twice.
std::vector<PolicyColumn> parse_policy_columns(std::string_view text, const PolicyOptions& base);

}  // namespace razorkv
