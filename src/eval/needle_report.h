// A needle run as a Markdown table and as JSON.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "eval/needle_run.h"

namespace razorkv {

/// What the result of a run depends on, beside task and columns.
struct NeedleFacts {
  std::string model_name;
  std::string model_sha256;
  std::string haystack;  ///< file name
  std::int64_t from = 0;
  std::uint64_t seed = 0;
  std::int64_t length = 0;
  std::int64_t new_tokens = 0;
  KvType kv_type = KvType::f16;
};

/// One row per policy: heads kept whole, window, measured bytes and their share of the uncompressed cache's, needles
/// found, and which depths were missed.
std::string needle_markdown(const NeedleFacts& facts, const NeedleTask& task, const NeedleResult& result);

/// Everything that evaluation section 1.2 asks for, and every answer.
nlohmann::json needle_json(const NeedleFacts& facts, const NeedleTask& task, const NeedleResult& result);

}  // namespace razorkv
