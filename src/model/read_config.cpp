#include "model/read_config.h"

#include <fmt/format.h>

#include <cmath>
#include <vector>

#include "model/config_keys.h"
#include "razorkv/error.h"

namespace razorkv {
namespace {

// Generous bounds: they keep products of two of them far from overflow, and claims of a corrupt file harmless.
constexpr std::int64_t kMaxLayers = 1024;
constexpr std::int64_t kMaxWidth = std::int64_t{1} << 20;
constexpr std::int64_t kMaxHeads = 4096;
constexpr std::int64_t kMaxHeadWidth = 4096;
constexpr std::int64_t kMaxVocabulary = std::int64_t{1} << 24;
constexpr std::int64_t kMaxContext = (std::int64_t{1} << 31) - 1;  // ggml takes contexts and positions as int32

/// One number for all layers, or an array with one number per layer.
std::vector<std::int64_t> per_layer(const ConfigKeys& keys, std::string_view name, std::int64_t layers,
                                    std::int64_t most) {
  const std::string key = keys.full(name);
  const GgufValue* value = keys.gguf().find(key);
  if (value == nullptr || value->type != GgufType::array) {
    return std::vector<std::int64_t>(static_cast<std::size_t>(layers), keys.count(name, 1, most));
  }
  if (value->count != static_cast<std::uint64_t>(layers)) {
    keys.gguf().fail(
        fmt::format("key '{}' should have one number for each of the {} layers, found {}", key, layers, value->count));
  }
  const auto numbers = keys.gguf().find_unsigned_array(key);
  std::vector<std::int64_t> counts;
  for (const std::uint64_t number : *numbers) {
    keys.check_count(name, number, 1, most);
    counts.push_back(static_cast<std::int64_t>(number));
  }
  return counts;
}

void read_layers(const ConfigKeys& keys, Config& config) {
  const std::int64_t layers = keys.count("block_count", 1, kMaxLayers);
  const auto heads = per_layer(keys, "attention.head_count", layers, kMaxHeads);
  const auto kv_heads =
      keys.has("attention.head_count_kv") ? per_layer(keys, "attention.head_count_kv", layers, kMaxHeads) : heads;
  const auto feed_forward = per_layer(keys, "feed_forward_length", layers, kMaxWidth);
  for (std::size_t i = 0; i < heads.size(); ++i) {
    if (kv_heads[i] > heads[i] || heads[i] % kv_heads[i] != 0) {
      keys.gguf().fail(fmt::format("key '{}' should divide the {} query heads of layer {}, found {}",
                                   keys.full("attention.head_count_kv"), heads[i], i, kv_heads[i]));
    }
    config.layers.push_back({.heads = heads[i], .kv_heads = kv_heads[i], .feed_forward = feed_forward[i]});
  }
}

void read_head_width(const ConfigKeys& keys, Config& config) {
  const std::int64_t heads = config.layers.front().heads;
  const auto key_width = keys.find_count("attention.key_length", 1, kMaxHeadWidth);
  if (!key_width && config.embedding % heads != 0) {
    keys.gguf().fail(fmt::format("key '{}' is missing and the width {} is no multiple of the {} heads",
                                 keys.full("attention.key_length"), config.embedding, heads));
  }
  config.head_width = key_width.value_or(config.embedding / heads);
  const std::int64_t value_width =
      keys.find_count("attention.value_length", 1, kMaxHeadWidth).value_or(config.embedding / heads);
  if (value_width != config.head_width) {
    throw UnsupportedModel(
        fmt::format("{}: heads of K have {} elements and heads of V {}; only equal widths are "
                    "supported",
                    keys.gguf().name(), config.head_width, value_width));
  }
}

void read_sliding(const ConfigKeys& keys, const Architecture& architecture, Config& config) {
  if (architecture.sliding_period == 0) return;
  const std::int64_t window =
      keys.find_count("attention.sliding_window", 0, kMaxContext).value_or(architecture.sliding_window);
  if (window == 0) return;
  config.sliding_window = window;
  const std::string key = keys.full("attention.sliding_window_pattern");
  const GgufValue* pattern = keys.gguf().find(key);
  if (pattern != nullptr && pattern->type == GgufType::array) {
    if (pattern->count != config.layers.size()) {
      keys.gguf().fail(fmt::format("key '{}' should have one entry for each of the {} layers, found {}", key,
                                   config.layers.size(), pattern->count));
    }
    const auto flags = keys.gguf().find_unsigned_array(key);
    for (std::size_t i = 0; i < config.layers.size(); ++i) config.layers[i].sliding = (*flags)[i] != 0;
    return;
  }
  const std::int64_t period =
      keys.find_count("attention.sliding_window_pattern", 1, kMaxLayers).value_or(architecture.sliding_period);
  for (std::size_t i = 0; i < config.layers.size(); ++i) {
    config.layers[i].sliding = static_cast<std::int64_t>(i) % period != period - 1;
  }
}

std::int64_t read_vocabulary(const ConfigKeys& keys) {
  const GgufFile& gguf = keys.gguf();
  const GgufTensor* embedding = gguf.find_tensor("token_embd.weight");
  if (embedding == nullptr) gguf.fail("tensor 'token_embd.weight' is missing");
  const std::int64_t rows = embedding->shape[1];
  if (rows > kMaxVocabulary) {
    gguf.fail(fmt::format("tensor 'token_embd.weight' should have at most {} rows, found {}", kMaxVocabulary, rows));
  }
  const auto claimed = keys.find_count("vocab_size", 1, kMaxVocabulary);
  if (claimed && *claimed != rows) {
    gguf.fail(fmt::format("key '{}' should equal the {} rows of token_embd.weight, found {}", keys.full("vocab_size"),
                          rows, *claimed));
  }
  const GgufValue* tokens = gguf.find("tokenizer.ggml.tokens");
  if (tokens != nullptr && (tokens->type != GgufType::array || tokens->element != GgufType::string ||
                            tokens->count != static_cast<std::uint64_t>(rows))) {
    gguf.fail(
        fmt::format("key 'tokenizer.ggml.tokens' should be an array of {} strings, the rows of "
                    "token_embd.weight, found {} of type {}",
                    rows, tokens->count, gguf_type_name(tokens->element)));
  }
  return rows;
}

void read_scales(const ConfigKeys& keys, const Architecture& architecture, Config& config) {
  config.norm_epsilon = keys.find_real("attention.layer_norm_rms_epsilon", 0.0F, 1.0F).value_or(-1.0F);
  if (config.norm_epsilon < 0.0F) {
    keys.gguf().fail(fmt::format("key '{}' is missing", keys.full("attention.layer_norm_rms_epsilon")));
  }
  const bool wide = architecture.wide_query_layers != 0 && config.layer_count() == architecture.wide_query_layers;
  const std::int64_t scaled = wide ? config.embedding / config.layers.front().heads : config.head_width;
  config.attention_scale = 1.0F / std::sqrt(static_cast<float>(scaled));
  config.attention_soft_cap =
      keys.find_real("attn_logit_softcapping", 0.0F, 1e6F).value_or(architecture.attention_soft_cap);
  config.final_soft_cap = keys.find_real("final_logit_softcapping", 0.0F, 1e6F).value_or(architecture.final_soft_cap);
  config.gelu = architecture.gelu;
  if (architecture.scale_embedding) config.embedding_scale = std::sqrt(static_cast<float>(config.embedding));
}

}  // namespace

const Architecture& require_architecture(const GgufFile& gguf) {
  const std::string_view name = gguf.require_string("general.architecture");
  const Architecture* found = find_architecture(name);
  if (found != nullptr) return *found;
  std::string known;
  for (const Architecture& one : architectures()) known += (known.empty() ? "" : ", ") + std::string(one.name);
  throw UnsupportedModel(
      fmt::format("{}: architecture '{}' is not supported; supported are {}", gguf.name(), name.substr(0, 64), known));
}

Config read_config(const GgufFile& gguf) {
  const Architecture& architecture = require_architecture(gguf);
  const ConfigKeys keys(gguf, architecture.name);
  Config config;
  config.architecture = std::string(architecture.name);
  config.name = std::string(gguf.find_string("general.name").value_or(""));
  config.embedding = keys.count("embedding_length", 1, kMaxWidth);
  config.context = keys.count("context_length", 1, kMaxContext);
  read_layers(keys, config);
  read_head_width(keys, config);
  config.vocabulary = read_vocabulary(keys);
  read_sliding(keys, architecture, config);
  read_scales(keys, architecture, config);
  config.rope = read_rope(gguf, architecture, config);
  return config;
}

}  // namespace razorkv
