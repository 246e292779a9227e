#include "engine/build_policy.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>
#include <vector>

#include "heads/head_plan.h"
#include "heads/head_selection.h"
#include "heads/importers.h"
#include "razorkv/error.h"

namespace razorkv {
namespace {

std::string window_text(const PolicyOptions& options) {
  return options.window_divisor > 0 ? fmt::format("window max({}, n/{})", options.window, options.window_divisor)
                                    : fmt::format("window {}", options.window);
}

void check_sizes(const PolicyOptions& options) {
  if (options.sinks < 0) throw InvalidArgument(fmt::format("sinks must be 0 or more, found {}", options.sinks));
  if (options.window < 1)
    throw InvalidArgument(fmt::format("the window must be 1 row or more, found {}", options.window));
  if (options.window_divisor < 0) {
    throw InvalidArgument(
        fmt::format("the window divisor must be 1 or more, or 0 for a fixed window; found {}", options.window_divisor));
  }
  if (options.budget_bytes < 0 || (options.budget_bytes > 0 && options.budget_tokens < 1)) {
    throw InvalidArgument("a KV byte budget needs a size above 0 and the number of tokens that it is meant for");
  }
}

HeadRule local_rule(const PolicyOptions& options, bool compensate) {
  return {false, options.sinks, options.window, options.window_divisor, compensate};
}

struct Chosen {
  std::vector<HeadId> heads;
  std::string how;
};

bool is_head_list(const std::string& path) { return std::filesystem::path(path).extension() == ".json"; }

Chosen choose_heads(const HeadShape& shape, const PolicyOptions& options, const ProfileSource& profile) {
  HeadChoice choice = parse_head_choice(options.heads);
  std::optional<HeadScores> scores;
  if (options.policy == "random" && !std::holds_alternative<RandomChoice>(choice.kind)) {
    const auto* shares = std::get_if<ShareChoice>(&choice.kind);
    if (shares == nullptr) {
      throw InvalidArgument(
          "policy random draws as many heads as a preset or two shares would protect; found --heads " + options.heads);
    }
    choice.kind = RandomChoice{options.seed, *shares};
    choice.text = fmt::format("random:{}:{}", options.seed, options.heads);
  }
  if (needs_scores(choice)) {
    scores = profile().scores;
    if (!scores) {
      throw InvalidArgument(
          "the head profile holds plans but no scores; name the heads by a list or make a new profile "
          "with razorkv profile");
    }
  }
  return {select_heads(choice, shape, scores), choice.text};
}

KvPolicy to_policy(const PolicyOptions& options, HeadPlan plan) {
  return {options.policy, options.prefill == PrefillMode::streaming, std::move(plan.rules)};
}

struct Built {
  KvPolicy policy;
  Chosen chosen;
};

Built build(const HeadShape& shape, const PolicyOptions& options, const ProfileSource& profile) {
  if (options.policy == "full")
    return {to_policy(options, make_plan(shape, shape.eligible(), HeadRule::all(), "")), {shape.eligible(), "all"}};
  if (options.policy == "streaming-llm") {
    return {to_policy(options, make_plan(shape, {}, local_rule(options, false), "")), {{}, "none"}};
  }
  if (options.policy == "duo") {
    if (options.profile.empty()) {
      throw InvalidArgument(
          "policy duo needs a pattern: --profile FOLDER with config.json and full_attention_heads.tsv");
    }
    HeadPlan plan = duo_plan(read_duo_pattern(options.profile), shape, 0.5);
    Chosen chosen{protected_heads(shape, plan), plan.how};
    return {to_policy(options, std::move(plan)), std::move(chosen)};
  }
  if (options.policy == "razor" || options.policy == "razor-nocomp" || options.policy == "random") {
    Chosen chosen = is_head_list(options.profile) && options.heads == "lists"
                        ? Chosen{read_head_lists(options.profile, shape).all(), "lists of " + options.profile}
                        : choose_heads(shape, options, profile);
    HeadPlan plan = make_plan(shape, chosen.heads, local_rule(options, options.policy != "razor-nocomp"), chosen.how);
    return {to_policy(options, std::move(plan)), std::move(chosen)};
  }
  throw InvalidArgument("unknown policy \"" + options.policy +
                        "\"; known: full, razor, razor-nocomp, streaming-llm, random, duo");
}

/// Narrows window, then heads, until the plan fits.
Built fit_budget(const HeadShape& shape, std::int64_t bytes_per_row, PolicyOptions options,
                 const ProfileSource& profile) {
  Built built = build(shape, options, profile);
  const auto bytes = [&] { return plan_bytes(built.policy, shape, options.budget_tokens, bytes_per_row); };
  if (bytes() <= options.budget_bytes) return built;
  const std::int64_t narrowest = std::max<std::int64_t>(1, options.budget_tokens / 64);
  const bool compensate = options.policy != "razor-nocomp" && options.policy != "streaming-llm";
  const auto with_window = [&](std::int64_t window) {
    options.window = window;
    options.window_divisor = 0;
    HeadPlan plan = make_plan(shape, built.chosen.heads, local_rule(options, compensate), built.chosen.how);
    built.policy = to_policy(options, std::move(plan));
    return bytes() <= options.budget_bytes;
  };
  // Scores fall along the ranking, so giving up the last of the ranked heads loses least.
  std::vector<HeadId> ranked = built.chosen.heads;
  if (options.policy != "streaming-llm" && !with_window(narrowest)) {
    const std::optional<HeadScores> scores = profile().scores;
    if (scores) {
      const KvHeadScores kv = kv_head_scores(shape, *scores);
      const auto score = [&](const HeadId& id) {
        const auto l = static_cast<std::size_t>(id.layer);
        const auto h = static_cast<std::size_t>(id.kv_head);
        return std::max(kv.induction[l][h], kv.echo[l][h]);
      };
      std::stable_sort(ranked.begin(), ranked.end(),
                       [&](const HeadId& a, const HeadId& b) { return score(a) > score(b); });
    }
    while (!ranked.empty() && !with_window(narrowest)) {
      ranked.pop_back();
      built.chosen.heads = ranked;
    }
    built.chosen.how += fmt::format(", cut to {} heads by the budget", ranked.size());
  }
  if (!with_window(narrowest)) {
    throw InvalidArgument(
        fmt::format("a KV budget of {} bytes is too small for {} tokens: windows of {} rows and no "
                    "protected head would still take {} bytes",
                    options.budget_bytes, options.budget_tokens, narrowest, bytes()));
  }
  std::int64_t low = narrowest;
  std::int64_t high = options.budget_tokens;
  while (low < high) {
    const std::int64_t middle = low + (high - low + 1) / 2;
    if (with_window(middle)) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  with_window(low);
  return built;
}

std::string describe(const PolicyOptions& options, const Built& built, const HeadShape& shape) {
  if (options.policy == "full") return "full: every KV head keeps everything";
  std::string text = fmt::format("{}: {} of {} KV heads kept whole ({})", options.policy, built.chosen.heads.size(),
                                 shape.eligible().size(), built.chosen.how);
  for (std::size_t l = 0; l < built.policy.rules.size(); ++l) {
    if (shape.layers[l].sliding) continue;
    for (const HeadRule& rule : built.policy.rules[l]) {
      if (rule.everything) continue;
      PolicyOptions sizes = options;
      sizes.window = rule.window_floor;
      sizes.window_divisor = rule.window_divisor;
      return text + fmt::format(", others {} sinks, {}{}", rule.sinks, window_text(sizes),
                                rule.compensate ? ", compensation token" : "");
    }
  }
  return text;
}

}  // namespace

std::int64_t plan_bytes(const KvPolicy& policy, const HeadShape& shape, std::int64_t tokens,
                        std::int64_t bytes_per_row) {
  std::int64_t rows = 0;
  for (std::size_t l = 0; l < policy.rules.size(); ++l) {
    for (const HeadRule& rule : policy.rules[l]) {
      if (shape.layers[l].sliding) {
        rows += std::min(tokens, shape.sliding_window);
      } else {
        rows +=
            rule.everything ? tokens : std::min(tokens, rule.sinks + (rule.compensate ? 1 : 0) + rule.window(tokens));
      }
    }
  }
  return rows * bytes_per_row;
}

Policy::Impl build_policy(const HeadShape& shape, std::int64_t bytes_per_row, const PolicyOptions& options,
                          const ProfileSource& profile) {
  check_sizes(options);
  Built built = options.budget_bytes > 0 && options.policy != "full"
                    ? fit_budget(shape, bytes_per_row, options, profile)
                    : build(shape, options, profile);
  Policy::Impl impl;
  impl.description = describe(options, built, shape);
  impl.protected_heads = static_cast<std::int64_t>(built.chosen.heads.size());
  impl.rules = std::make_shared<const KvPolicy>(std::move(built.policy));
  return impl;
}

}  // namespace razorkv
