// A KLD run as Markdown and as JSON.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "eval/perplexity/kld_run.h"

namespace razorkv {

/// What the result of a run depends on, beside text and columns.
struct TextRunFacts {
  std::string model_name;
  std::string model_sha256;
  std::string text;  ///< file name
  std::int64_t context = 0;
  KvType kv_type = KvType::f16;
  std::string base;  ///< file name of the base; empty: the uncompressed engine
};

/// Three tables: one row per policy with measured bytes, PPL ratio, KLD, same top and tokens/s; percentiles; KLD, same
/// top and PPL ratio by distance from the compression point. Under 100 tokens: a note that they are too few.
std::string kld_markdown(const TextRunFacts& facts, const KldResult& result);

nlohmann::json kld_json(const TextRunFacts& facts, const KldResult& result);

}  // namespace razorkv
