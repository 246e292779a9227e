#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <sstream>

#include "base/atomic_file.h"
#include "base/json_fields.h"
#include "heads/importers.h"
#include "razorkv/error.h"

namespace razorkv {
namespace {

constexpr std::size_t kMaxPatternBytes = 16UL << 20;
constexpr std::int64_t kMaxRows = 1LL << 40;

std::vector<double> gate_row(const std::string& line, const std::string& place) {
  std::vector<double> gates;
  std::istringstream fields(line);
  std::string field;
  while (std::getline(fields, field, '\t')) {
    double gate = 0.0;
    const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), gate);
    if (error != std::errc{} || end != field.data() + field.size() || !std::isfinite(gate)) {
      throw FileError(fmt::format("{}, column {}: expected a number, found '{}'", place, gates.size() + 1, field));
    }
    gates.push_back(std::clamp(gate, 0.0, 1.0));
  }
  return gates;
}

std::vector<std::vector<double>> gate_table(const std::string& path) {
  std::vector<std::vector<double>> table;
  std::istringstream lines(read_whole_file(path, kMaxPatternBytes));
  std::string line;
  while (std::getline(lines, line)) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (line.empty()) continue;
    const std::string place = fmt::format("{}, row {}", path, table.size() + 1);
    table.push_back(gate_row(line, place));
    if (table.back().size() != table.front().size()) {
      throw FileError(fmt::format("{}: expected {} columns (KV heads) as in row 1, found {}", place,
                                  table.front().size(), table.back().size()));
    }
  }
  if (table.empty()) throw FileError(path + ": expected one row of tab-separated gates per layer, found none");
  return table;
}

}  // namespace

DuoPattern read_duo_pattern(const std::string& path) {
  if (!std::filesystem::is_directory(path)) return {gate_table(path), {}, {}};
  const std::filesystem::path folder(path);
  DuoPattern pattern{gate_table((folder / "full_attention_heads.tsv").string()), {}, {}};
  const std::string config_path = (folder / "config.json").string();
  const nlohmann::json config = parse_json(read_whole_file(config_path, kMaxPatternBytes), config_path);
  const JsonField root(config, config_path);
  pattern.sinks = root["sink_size"].integer(0, kMaxRows);
  pattern.window = root["recent_size"].integer(1, kMaxRows);
  return pattern;
}

std::vector<HeadId> duo_full_heads(const DuoPattern& pattern, const HeadShape& shape, double sparsity) {
  if (!(sparsity >= 0.0 && sparsity <= 1.0)) {
    throw InvalidArgument(fmt::format("sparsity: expected a number from 0 to 1, found {}", sparsity));
  }
  if (pattern.gates.size() != shape.layers.size()) {
    throw InvalidArgument(fmt::format("DuoAttention pattern: the model has {} layers, the pattern {}",
                                      shape.layers.size(), pattern.gates.size()));
  }
  for (std::size_t layer = 0; layer < shape.layers.size(); ++layer) {
    if (static_cast<std::int64_t>(pattern.gates[layer].size()) != shape.layers[layer].kv_heads) {
      throw InvalidArgument(fmt::format("DuoAttention pattern: layer {} of the model has {} KV heads, the pattern {}",
                                        layer, shape.layers[layer].kv_heads, pattern.gates[layer].size()));
    }
  }
  std::vector<HeadId> heads;
  for (std::size_t layer = 0; layer < shape.layers.size(); ++layer) {
    for (std::int64_t kv_head = 0; kv_head < shape.layers[layer].kv_heads; ++kv_head) {
      heads.push_back({static_cast<std::int64_t>(layer), kv_head});
    }
  }
  const auto gate = [&](HeadId head) {
    return pattern.gates[static_cast<std::size_t>(head.layer)][static_cast<std::size_t>(head.kv_head)];
  };
  std::stable_sort(heads.begin(), heads.end(), [&](HeadId a, HeadId b) { return gate(a) > gate(b); });
  const auto total = static_cast<double>(heads.size());
  // The rounding guard keeps 0.7 * 10 from becoming 7.000...1 and then 8.
  const double below = sparsity >= 1.0 ? total : std::ceil(sparsity * (total - 1.0) - 1e-9);
  heads.resize(static_cast<std::size_t>(total - std::max(0.0, below)));
  std::erase_if(heads, [&](HeadId head) { return shape.layers[static_cast<std::size_t>(head.layer)].sliding; });
  std::sort(heads.begin(), heads.end());
  return heads;
}

HeadPlan duo_plan(const DuoPattern& pattern, const HeadShape& shape, double sparsity, std::optional<std::int64_t> sinks,
                  std::optional<std::int64_t> window) {
  if (!sinks) sinks = pattern.sinks;
  if (!window) window = pattern.window;
  if (!sinks || !window) {
    throw InvalidArgument(
        "DuoAttention pattern without config.json: give its sink and recent sizes (--sinks, --window)");
  }
  if (*sinks < 0 || *window < 1) {
    throw InvalidArgument(
        fmt::format("DuoAttention pattern: expected sinks >= 0 and window >= 1, found {} and {}", *sinks, *window));
  }
  const HeadRule local{false, *sinks, *window, 0, false};
  return make_plan(shape, duo_full_heads(pattern, shape, sparsity), local,
                   fmt::format("DuoAttention pattern, sparsity {}, sinks {}, recent {}", sparsity, *sinks, *window));
}

}  // namespace razorkv
