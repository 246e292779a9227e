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
///   snapkv, pyramidkv, h2o        rows chosen by attention in every head
///   razor+snapkv:HEADS            the same in HEADS, the others as razor; also razor+h2o:HEADS
/// each followed by @SHARE for a share of the uncompressed cache (snapkv@0.33), or by @ROWS per head (h2o@512) where
/// rows are chosen. A share narrows windows, then gives up heads; streaming-llm takes the widest window that it allows.
/// `base` gives sinks, window, profile and row type. Throws InvalidArgument for an empty list, an unknown word and a
/// column that comes twice.
std::vector<PolicyColumn> parse_policy_columns(std::string_view text, const PolicyOptions& base);

/// The columns' policies; shares are those of the cache of a context of `tokens`. Throws as Policy::make().
std::vector<Policy> make_policies(const Model& model, const std::vector<PolicyColumn>& columns, std::int64_t tokens,
                                  const Progress& progress);

}  // namespace razorkv
