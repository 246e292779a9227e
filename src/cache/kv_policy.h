// What every KV head of a model keeps, and from when on.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cache/head_rule.h"

namespace razorkv {

/// How heads that keep everything are cut to a budget of rows when the prompt ends, by the attention that the prompt's
/// own rows paid. Rows that follow are all kept.
struct RowSelection {
  enum class By : std::uint8_t {
    nothing,
    snapkv,     ///< most attended by the last `window` rows, votes pooled over neighbours
    pyramidkv,  ///< as snapkv, with fewer rows from layer to layer
    h2o         ///< most attended by all rows, and as many of the newest
  };
  By by = By::nothing;
  std::int64_t rows = 0;    ///< per head; the mean over the layers for pyramidkv
  std::int64_t window = 0;  ///< rows that vote, at the end of the prompt; always kept. Not for h2o
  std::int64_t kernel = 0;  ///< rows pooled into one vote, odd. Not for h2o
  bool max_pool = false;    ///< largest vote instead of the mean
  bool operator==(const RowSelection&) const = default;
};

struct KvPolicy {
  std::string name = "full";
  /// Rules apply from the first token on; otherwise from KvSequence::compress() on (the end of the prompt).
  bool streaming = false;
  std::vector<std::vector<HeadRule>> rules;  ///< [layer][KV head]
  RowSelection selection = {};               ///< of the heads that keep everything by their rule

  bool selects_rows() const { return selection.by != RowSelection::By::nothing; }
  bool keeps_everything() const {
    if (selects_rows()) return false;
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
