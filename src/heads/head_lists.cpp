#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/atomic_file.h"
#include "base/json_fields.h"
#include "heads/importers.h"
#include "razorkv/error.h"

namespace razorkv {
namespace {

constexpr std::size_t kMaxListBytes = 16UL << 20;

std::int64_t layer_number(const std::string& name, const JsonField& field, const HeadShape& shape) {
  std::int64_t layer = -1;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), layer);
  if (error != std::errc{} || end != name.data() + name.size() || layer < 0 ||
      layer >= static_cast<std::int64_t>(shape.layers.size())) {
    throw FileError(fmt::format("{}: expected a layer from 0 to {} as the name, found '{}'", field.place(),
                                shape.layers.size() - 1, name));
  }
  if (shape.layers[static_cast<std::size_t>(layer)].sliding) {
    throw FileError(
        fmt::format("{}: layer {} has the model's own sliding window and cannot be protected", field.place(), layer));
  }
  return layer;
}

std::vector<HeadId> heads_of(const JsonField& lists, const HeadShape& shape) {
  std::vector<HeadId> heads;
  for (const auto& [name, field] : lists.members()) {
    const std::int64_t layer = layer_number(name, field, shape);
    const std::int64_t last = shape.layers[static_cast<std::size_t>(layer)].kv_heads - 1;
    for (const JsonField& head : field.elements()) heads.push_back({layer, head.integer(0, last)});
  }
  std::sort(heads.begin(), heads.end());
  heads.erase(std::unique(heads.begin(), heads.end()), heads.end());
  return heads;
}

}  // namespace

std::vector<HeadId> HeadLists::all() const {
  std::vector<HeadId> heads;
  std::set_union(induction.begin(), induction.end(), echo.begin(), echo.end(), std::back_inserter(heads));
  return heads;
}

HeadLists read_head_lists(const std::string& path, const HeadShape& shape) {
  const nlohmann::json document = parse_json(read_whole_file(path, kMaxListBytes), path);
  const JsonField root(document, path);
  HeadLists lists;
  if (!root.has("prefix_matching") && !root.has("copying")) {
    lists.induction = heads_of(root, shape);
    return lists;
  }
  if (root.has("prefix_matching")) lists.induction = heads_of(root["prefix_matching"], shape);
  if (root.has("copying")) lists.echo = heads_of(root["copying"], shape);
  return lists;
}

}  // namespace razorkv
