// razorkv info: what is in a GGUF file.
#include <fmt/format.h>
#include <ggml.h>

#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/file_mapping.h"
#include "base/utf8.h"
#include "cli/commands.h"
#include "cli/common_options.h"
#include "cli/report.h"
#include "model/chat_template.h"
#include "model/gguf_file.h"
#include "model/loaded_model.h"
#include "model/vocabulary.h"
#include "razorkv/error.h"

namespace razorkv::cli {
namespace {

using nlohmann::json;

struct InfoArguments {
  ModelArguments model;
  bool tensors = false;
  bool as_json = false;
};

std::string text_or(const GgufFile& file, const char* key, const char* otherwise) {
  const auto value = file.find_string(key);
  return value ? replace_invalid_utf8(*value) : otherwise;
}

/// What lies in the file, whether or not the engine can run it.
json describe_file(const GgufFile& file, bool all_tensors) {
  std::map<std::string, std::pair<std::int64_t, std::uint64_t>> types;  // count, bytes
  json tensors = json::array();
  for (const GgufTensor& tensor : file.tensors()) {
    const std::string type = ggml_type_name(static_cast<ggml_type>(tensor.type));
    ++types[type].first;
    types[type].second += tensor.bytes;
    if (!all_tensors) continue;
    const std::span<const std::int64_t> shape(tensor.shape.data(), tensor.dimensions);
    tensors.push_back({{"name", replace_invalid_utf8(tensor.name)},
                       {"type", type},
                       {"shape", std::vector<std::int64_t>(shape.begin(), shape.end())},
                       {"bytes", tensor.bytes}});
  }
  json out = {{"path", file.name()},
              {"bytes", file.bytes().size()},
              {"gguf_version", file.version()},
              {"architecture", text_or(file, "general.architecture", "")},
              {"name", text_or(file, "general.name", "")},
              {"metadata_keys", file.values().size()},
              {"tensor_count", file.tensors().size()},
              {"tensor_types", json::object()}};
  for (const auto& [type, sum] : types) out["tensor_types"][type] = {{"count", sum.first}, {"bytes", sum.second}};
  if (all_tensors) out["tensors"] = std::move(tensors);
  return out;
}

json describe_model(const LoadedModel& model) {
  const Config& config = model.config();
  const WeightBytes weights = model.weight_bytes();
  json layers = json::array();
  std::int64_t sliding = 0;
  for (const LayerConfig& layer : config.layers) {
    layers.push_back({{"heads", layer.heads},
                      {"kv_heads", layer.kv_heads},
                      {"feed_forward", layer.feed_forward},
                      {"sliding", layer.sliding}});
    sliding += layer.sliding ? 1 : 0;
  }
  return {{"layers", layers},
          {"layer_count", config.layer_count()},
          {"sliding_layers", sliding},
          {"sliding_window", config.sliding_window},
          {"embedding", config.embedding},
          {"head_width", config.head_width},
          {"vocabulary", config.vocabulary},
          {"context", config.context},
          {"kv_bytes_per_token", {{"f16", config.kv_bytes_per_token(2)}, {"f32", config.kv_bytes_per_token(4)}}},
          {"weights", {{"mapped", weights.mapped}, {"copied", weights.copied}, {"repacked", weights.repacked}}},
          {"fingerprint", model.fingerprint()}};
}

/// "9" where all layers have the same, "9 to 12" otherwise.
std::string range_text(const json& layers, const char* key) {
  std::int64_t low = 0;
  std::int64_t high = 0;
  for (const json& layer : layers) {
    const auto value = layer.at(key).get<std::int64_t>();
    if (&layer == &layers.front() || value < low) low = value;
    if (&layer == &layers.front() || value > high) high = value;
  }
  return low == high ? fmt::format("{}", low) : fmt::format("{} to {}", low, high);
}

void print_line(const char* label, const std::string& text) { fmt::print("{:<16}{}\n", label, text); }

void print_text(const json& info) {
  print_line("file", info.at("path").get<std::string>());
  print_line("size", byte_text(info.at("bytes").get<std::size_t>()));
  print_line("format",
             fmt::format("GGUF v{}, {} metadata keys, {} tensors", info.at("gguf_version").get<int>(),
                         info.at("metadata_keys").get<std::size_t>(), info.at("tensor_count").get<std::size_t>()));
  print_line("name", info.at("name").get<std::string>());
  print_line("architecture", info.at("architecture").get<std::string>());
  std::string types;
  for (const auto& [type, sum] : info.at("tensor_types").items()) {
    types += fmt::format("{}{} {} ({})", types.empty() ? "" : ", ", sum.at("count").get<int>(), type,
                         byte_text(sum.at("bytes").get<std::size_t>()));
  }
  print_line("tensor types", types);
  if (info.contains("model")) {
    const json& model = info.at("model");
    const json& layers = model.at("layers");
    print_line("layers", fmt::format("{}, embedding {}, feed-forward {}", model.at("layer_count").get<int>(),
                                     model.at("embedding").get<std::int64_t>(), range_text(layers, "feed_forward")));
    print_line("heads", fmt::format("{} query and {} KV heads per layer, width {}", range_text(layers, "heads"),
                                    range_text(layers, "kv_heads"), model.at("head_width").get<std::int64_t>()));
    if (model.at("sliding_layers").get<int>() > 0) {
      print_line("sliding window", fmt::format("{} tokens in {} layers", model.at("sliding_window").get<std::int64_t>(),
                                               model.at("sliding_layers").get<int>()));
    }
    const auto per_token = model.at("kv_bytes_per_token").at("f16").get<std::size_t>();
    const auto context = model.at("context").get<std::size_t>();
    print_line("context",
               fmt::format("{} tokens, {} of KV in f16, uncompressed", context, byte_text(per_token * context)));
    print_line("KV per token", fmt::format("{} in f16, {} in f32", byte_text(per_token), byte_text(2 * per_token)));
    const json& weights = model.at("weights");
    print_line("weights",
               fmt::format("{} mapped, {} copied, {} repacked", byte_text(weights.at("mapped").get<std::size_t>()),
                           byte_text(weights.at("copied").get<std::size_t>()),
                           byte_text(weights.at("repacked").get<std::size_t>())));
    print_line("fingerprint", model.at("fingerprint").get<std::string>());
  }
  if (info.contains("vocabulary")) {
    const json& vocabulary = info.at("vocabulary");
    print_line("vocabulary", fmt::format("{} tokens, {}{}{}", vocabulary.at("size").get<std::int64_t>(),
                                         vocabulary.at("kind").get<std::string>(),
                                         vocabulary.at("adds_bos").get<bool>() ? ", puts BOS first" : "",
                                         vocabulary.at("adds_eos").get<bool>() ? ", puts EOS last" : ""));
    print_line("chat template", vocabulary.at("chat_template").get<std::string>());
  }
  for (const json& reason : info.at("unsupported")) print_line("unsupported", reason.get<std::string>());
  if (info.contains("tensors")) {
    for (const json& tensor : info.at("tensors")) {
      fmt::print("{:<40} {:<6} {}\n", tensor.at("name").get<std::string>(), tensor.at("type").get<std::string>(),
                 tensor.at("shape").dump());
    }
  }
}

std::string template_state(const std::shared_ptr<const Vocabulary>& vocabulary) {
  if (vocabulary->chat_template().empty()) return "none";
  try {
    const ChatTemplate known(vocabulary);
    return "known";
  } catch (const UnsupportedModel&) {
    return "not known: choose one with --chat-template";
  }
}

void run(const InfoArguments& arguments) {
  const FileMapping mapping(arguments.model.path);
  const GgufFile file = GgufFile::parse(mapping.bytes(), arguments.model.path);
  json info = describe_file(file, arguments.tensors);
  info["unsupported"] = json::array();
  try {
    const auto model = LoadedModel::load(arguments.model.path, {!arguments.model.no_mmap, !arguments.model.no_repack});
    info["model"] = describe_model(*model);
  } catch (const UnsupportedModel& error) {
    info["unsupported"].push_back(error.what());
  }
  try {
    const auto vocabulary = Vocabulary::open(arguments.model.path);
    info["vocabulary"] = {{"size", vocabulary->size()},
                          {"kind", text_or(file, "tokenizer.ggml.model", "")},
                          {"adds_bos", vocabulary->adds_bos()},
                          {"adds_eos", vocabulary->adds_eos()},
                          {"chat_template", template_state(vocabulary)}};
  } catch (const UnsupportedModel& error) {
    info["unsupported"].push_back(error.what());
  }
  if (arguments.as_json) {
    print_json(info);
  } else {
    print_text(info);
  }
}

}  // namespace

void add_info_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("info", "Show what is in a GGUF file and whether it can be run");
  const auto arguments = std::make_shared<InfoArguments>();
  arguments->model.add(*command);
  command->add_flag("--tensors", arguments->tensors, "List all tensors");
  command->add_flag("--json", arguments->as_json, "Print one JSON document");
  command->callback([arguments] { run(*arguments); });
}

}  // namespace razorkv::cli
