// {"format": "razorkv-profile", "version": 1, "engine": "0.1.0",
//  "model":   {"fingerprint", "architecture", "name", "head_width", "sliding_window",
//              "layers": [{"heads", "kv_heads", "sliding"}, ...]},
//  "scoring": {"block", "repeats", "seeds": [...], "ids": [low, high], "distinct", "prefix", "rope": "post" | "pre"},
//  "scores":  {"induction": [[per query head], ...], "echo", "kv_induction": [[per KV head], ...], "kv_echo"},
//  "plans":   {NAME: {"how", "layers": [[RULE per KV head], ...]}, ...}}
// RULE: "all" or {"sinks", "floor", "divisor", "compensate"}. Heads of sliding layers hold the model's own window.
#include <fmt/format.h>

#include "base/json_fields.h"
#include "heads/profile.h"
#include "razorkv/error.h"

namespace razorkv {
namespace {

using nlohmann::json;

constexpr std::int64_t kMaxCount = 1LL << 20;  // layers, heads: far above any model, far below trouble
constexpr std::int64_t kMaxRows = 1LL << 40;
constexpr double kMaxScore = 1.001;  // a mean of probabilities, summed over copies; slack for float32 log-sum-exp

json rule_to_json(const HeadRule& rule) {
  if (rule.everything) return "all";
  return {{"sinks", rule.sinks},
          {"floor", rule.window_floor},
          {"divisor", rule.window_divisor},
          {"compensate", rule.compensate}};
}

HeadRule rule_from_json(const JsonField& field) {
  if (field.raw().is_string()) {
    if (field.string() != "all") field.refuse("\"all\" or an object");
    return HeadRule::all();
  }
  HeadRule rule;
  rule.everything = false;
  rule.sinks = field["sinks"].integer(0, kMaxRows);
  rule.window_floor = field["floor"].integer(1, kMaxRows);
  rule.window_divisor = field["divisor"].integer(0, kMaxRows);
  rule.compensate = field["compensate"].boolean();
  return rule;
}

json model_to_json(const ProfileModel& model) {
  json layers = json::array();
  for (const LayerHeads& layer : model.shape.layers) {
    layers.push_back({{"heads", layer.heads}, {"kv_heads", layer.kv_heads}, {"sliding", layer.sliding}});
  }
  return {{"fingerprint", model.fingerprint},     {"architecture", model.architecture},           {"name", model.name},
          {"head_width", model.shape.head_width}, {"sliding_window", model.shape.sliding_window}, {"layers", layers}};
}

ProfileModel model_from_json(const JsonField& field) {
  ProfileModel model;
  model.fingerprint = field["fingerprint"].string();
  model.architecture = field["architecture"].string();
  model.name = field["name"].string();
  model.shape.head_width = field["head_width"].integer(1, kMaxCount);
  model.shape.sliding_window = field["sliding_window"].integer(0, kMaxRows);
  for (const JsonField& layer : field["layers"].elements()) {
    LayerHeads heads;
    heads.heads = layer["heads"].integer(1, kMaxCount);
    heads.kv_heads = layer["kv_heads"].integer(1, heads.heads);
    heads.sliding = layer["sliding"].boolean();
    if (heads.heads % heads.kv_heads != 0) layer.refuse("KV heads that divide the query heads");
    if (heads.sliding && model.shape.sliding_window < 1) layer.refuse("a sliding_window of at least 1 row");
    model.shape.layers.push_back(heads);
  }
  if (model.shape.layers.empty()) field["layers"].refuse("at least one layer");
  return model;
}

json scoring_to_json(const ScoringFacts& facts) {
  return {{"block", facts.block},
          {"repeats", facts.repeats},
          {"seeds", facts.seeds},
          {"ids", {facts.id_low, facts.id_high}},
          {"distinct", facts.distinct},
          {"prefix", facts.prefix},
          {"rope", facts.before_rope ? "pre" : "post"}};
}

ScoringFacts scoring_from_json(const JsonField& field) {
  ScoringFacts facts;
  facts.block = field["block"].integer(1, kMaxRows);
  facts.repeats = field["repeats"].integer(2, kMaxRows);
  for (const JsonField& seed : field["seeds"].elements()) facts.seeds.push_back(seed.unsigned_integer());
  if (facts.seeds.empty()) field["seeds"].refuse("at least one seed");
  const std::vector<JsonField> ids = field["ids"].elements();
  if (ids.size() != 2) field["ids"].refuse("[low, high]");
  facts.id_low = ids[0].integer(0, kMaxRows);
  facts.id_high = ids[1].integer(facts.id_low + 1, kMaxRows);
  facts.distinct = field["distinct"].boolean();
  facts.prefix = field["prefix"].boolean();
  const std::string rope = field["rope"].string();
  if (rope != "pre" && rope != "post") field["rope"].refuse("\"pre\" or \"post\"");
  facts.before_rope = rope == "pre";
  return facts;
}

std::vector<std::vector<double>> score_rows(const JsonField& field, const HeadShape& shape,
                                            std::int64_t LayerHeads::*count) {
  std::vector<std::vector<double>> rows;
  const std::vector<JsonField> layers = field.elements();
  if (layers.size() != shape.layers.size()) field.refuse(fmt::format("{} layers", shape.layers.size()));
  for (std::size_t layer = 0; layer < layers.size(); ++layer) {
    const std::vector<JsonField> heads = layers[layer].elements();
    const std::int64_t expected = shape.layers[layer].*count;
    if (static_cast<std::int64_t>(heads.size()) != expected) layers[layer].refuse(fmt::format("{} scores", expected));
    std::vector<double>& row = rows.emplace_back();
    for (const JsonField& head : heads) row.push_back(head.number(0.0, kMaxScore));
  }
  return rows;
}

HeadScores scores_from_json(const JsonField& field, const HeadShape& shape) {
  HeadScores scores{score_rows(field["induction"], shape, &LayerHeads::heads),
                    score_rows(field["echo"], shape, &LayerHeads::heads)};
  const KvHeadScores kv = kv_head_scores(shape, scores);
  if (score_rows(field["kv_induction"], shape, &LayerHeads::kv_heads) != kv.induction) {
    field["kv_induction"].refuse("the largest induction score of each group");
  }
  if (score_rows(field["kv_echo"], shape, &LayerHeads::kv_heads) != kv.echo) {
    field["kv_echo"].refuse("the largest echo score of each group");
  }
  return scores;
}

HeadPlan plan_from_json(const JsonField& field, const HeadShape& shape) {
  HeadPlan plan{field["how"].string(), {}};
  const std::vector<JsonField> layers = field["layers"].elements();
  if (layers.size() != shape.layers.size()) field["layers"].refuse(fmt::format("{} layers", shape.layers.size()));
  for (std::size_t layer = 0; layer < layers.size(); ++layer) {
    const std::vector<JsonField> rules = layers[layer].elements();
    const LayerHeads& heads = shape.layers[layer];
    if (static_cast<std::int64_t>(rules.size()) != heads.kv_heads) {
      layers[layer].refuse(fmt::format("{} rules, one per KV head", heads.kv_heads));
    }
    std::vector<HeadRule>& row = plan.rules.emplace_back();
    for (const JsonField& rule : rules) {
      row.push_back(rule_from_json(rule));
      if (heads.sliding && row.back() != HeadRule::sliding(shape.sliding_window)) {
        rule.refuse(fmt::format("the model's own window of {} rows in a sliding layer", shape.sliding_window));
      }
    }
  }
  return plan;
}

json plan_to_json(const HeadPlan& plan) {
  json layers = json::array();
  for (const std::vector<HeadRule>& rules : plan.rules) {
    json row = json::array();
    for (const HeadRule& rule : rules) row.push_back(rule_to_json(rule));
    layers.push_back(row);
  }
  return {{"how", plan.how}, {"layers", layers}};
}

}  // namespace

std::string profile_to_json(const HeadProfile& profile) {
  json document = {{"format", "razorkv-profile"},
                   {"version", kProfileVersion},
                   {"engine", profile.engine_version},
                   {"model", model_to_json(profile.model)},
                   {"plans", json::object()}};
  if (profile.scoring) document["scoring"] = scoring_to_json(*profile.scoring);
  if (profile.scores) {
    const KvHeadScores kv = kv_head_scores(profile.model.shape, *profile.scores);
    document["scores"] = {{"induction", profile.scores->induction},
                          {"echo", profile.scores->echo},
                          {"kv_induction", kv.induction},
                          {"kv_echo", kv.echo}};
  }
  for (const auto& [name, plan] : profile.plans) document["plans"][name] = plan_to_json(plan);
  return document.dump(1) + "\n";
}

HeadProfile profile_from_json(const std::string& text, const std::string& origin) {
  const json document = parse_json(text, origin);
  const JsonField root(document, origin);
  if (!root.has("format") || root["format"].raw() != "razorkv-profile") {
    root.refuse("a head profile ({\"format\": \"razorkv-profile\", ...})");
  }
  if (root["version"].raw() != kProfileVersion) {
    root["version"].refuse(fmt::format("{}; make a new profile with razorkv profile", kProfileVersion));
  }
  HeadProfile profile;
  profile.engine_version = root["engine"].string();
  profile.model = model_from_json(root["model"]);
  if (root.has("scoring") != root.has("scores")) root.refuse("both of scoring and scores, or neither");
  if (root.has("scores")) {
    profile.scoring = scoring_from_json(root["scoring"]);
    profile.scores = scores_from_json(root["scores"], profile.model.shape);
  }
  for (const auto& [name, plan] : root["plans"].members()) {
    profile.plans.emplace(name, plan_from_json(plan, profile.model.shape));
  }
  return profile;
}

}  // namespace razorkv
