#include "model/unsupported.h"

#include <fmt/format.h>
#include <ggml-cpu.h>
#include <ggml.h>

#include <map>
#include <unordered_map>

#include "model/config_keys.h"
#include "model/read_config.h"
#include "model/weight_table.h"
#include "razorkv/error.h"

namespace razorkv {
namespace {

bool multiplies(ggml_type type) {
  if (ggml_get_type_traits_cpu(type)->vec_dot == nullptr) return false;
  if (ggml_is_quantized(type)) return ggml_get_type_traits(type)->to_float != nullptr;
  return type == GGML_TYPE_F32 || type == GGML_TYPE_F16 || type == GGML_TYPE_BF16;
}

bool usable(ggml_type type, WeightUse use) {
  return use == WeightUse::vector ? type == GGML_TYPE_F32 : multiplies(type);
}

/// "blk.17.ffn_up_exps.weight" -> "blk.N.ffn_up_exps.weight", so that a list names each kind once.
std::string without_layer(const std::string& name) {
  if (!name.starts_with("blk.")) return name;
  const std::size_t dot = name.find('.', 4);
  return dot == std::string::npos ? name : "blk.N" + name.substr(dot);
}

void check_keys(const ConfigKeys& keys, std::vector<std::string>& reasons) {
  const auto experts = keys.find_count("expert_count", 0, std::int64_t{1} << 20);
  if (experts.value_or(0) > 0) reasons.push_back(fmt::format("mixture of experts ({} experts)", *experts));
  const auto parts = keys.gguf().find_unsigned("split.count");
  if (parts.value_or(0) > 1) {
    reasons.push_back(fmt::format("a model split over {} files; merge it into one file first", *parts));
  }
}

void check_tensors(const GgufFile& gguf, const std::vector<WeightSpec>& table, std::vector<std::string>& reasons) {
  std::unordered_map<std::string_view, WeightUse> known;
  for (const WeightSpec& spec : table) known.emplace(spec.name, spec.use);
  std::map<std::string, std::size_t> unknown;
  std::map<std::string, std::size_t> wrong_type;
  for (const GgufTensor& tensor : gguf.tensors()) {
    const auto type = static_cast<ggml_type>(tensor.type);
    const auto entry = known.find(tensor.name);
    if (entry == known.end()) {
      ++unknown[without_layer(tensor.name)];
    } else if (!usable(type, entry->second)) {
      ++wrong_type[fmt::format("type {} of tensor {}{}", ggml_type_name(type), without_layer(tensor.name),
                               entry->second == WeightUse::vector ? " (f32 expected)" : "")];
    }
  }
  for (const auto& [name, count] : unknown)
    reasons.push_back(fmt::format("unknown tensor {} ({} in the file)", name, count));
  for (const auto& [what, count] : wrong_type) reasons.push_back(fmt::format("{} ({} in the file)", what, count));
}

}  // namespace

std::vector<std::string> unsupported_features(const GgufFile& gguf) {
  std::vector<std::string> reasons;
  try {
    const Architecture& architecture = require_architecture(gguf);
    check_keys(ConfigKeys(gguf, architecture.name), reasons);
    const Config config = read_config(gguf);
    ModelWeights weights;
    check_tensors(gguf, weight_table(config, architecture, weights), reasons);
  } catch (const UnsupportedModel& error) {
    const std::string text = error.what();
    const std::string prefix = gguf.name() + ": ";
    reasons.push_back(text.starts_with(prefix) ? text.substr(prefix.size()) : text);
  }
  return reasons;
}

}  // namespace razorkv
