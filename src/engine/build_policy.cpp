#include "engine/build_policy.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

#include "engine/policy_choice.h"
#include "engine/prompt_attention.h"
#include "heads/bounded_draw.h"
#include "heads/head_plan.h"
#include "heads/head_selection.h"
#include "heads/importers.h"
#include "razorkv/error.h"

namespace razorkv {
namespace {

constexpr double kDuoSparsity = 0.5;
constexpr std::int64_t kMaxKernel = 63;
constexpr std::int64_t kMaxRows = std::int64_t{1} << 40;  // sums of a few stay within 64 bits

void check_sizes(const PolicyOptions& options) {
  const auto within = [](const char* what, std::int64_t value, std::int64_t least) {
    if (value < least || value > kMaxRows) {
      throw InvalidArgument(fmt::format("{}: expected {} to {}, found {}", what, least, kMaxRows, value));
    }
  };
  within("--sinks", options.sinks, 0);
  within("--window", options.window, 1);
  within("--window-div (0 = fixed window)", options.window_divisor, 0);
  if (options.budget_bytes < 0 || (options.budget_bytes > 0 && options.budget_tokens < 1)) {
    throw InvalidArgument("a KV byte budget needs a size above 0 and the number of tokens that it is meant for");
  }
  if (options.budget_share != 0.0 && !(options.budget_share > 0.0 && options.budget_share <= 1.0)) {
    throw InvalidArgument(
        fmt::format("a share of the uncompressed cache is above 0 and up to 1, found {}", options.budget_share));
  }
  if (options.budget_share != 0.0 && (options.budget_bytes > 0 || options.budget_tokens < 1)) {
    throw InvalidArgument(
        "a KV budget is either bytes or a share, and needs the number of tokens that it is meant for");
  }
}

/// Best first, by the better of its two scores.
void sort_by_score(std::vector<HeadId>& heads, const HeadShape& shape, const HeadScores& scores) {
  const KvHeadScores kv = kv_head_scores(shape, scores);
  const auto score = [&](const HeadId& id) {
    const auto l = static_cast<std::size_t>(id.layer);
    const auto h = static_cast<std::size_t>(id.kv_head);
    return std::max(kv.induction[l][h], kv.echo[l][h]);
  };
  std::stable_sort(heads.begin(), heads.end(), [&](const HeadId& a, const HeadId& b) { return score(a) > score(b); });
}

HeadChoice parse_choice(const PolicyOptions& options) {
  HeadChoice choice = parse_head_choice(options.heads);
  if (options.policy != "random" || std::holds_alternative<RandomChoice>(choice.kind)) return choice;
  const auto* shares = std::get_if<ShareChoice>(&choice.kind);
  if (shares == nullptr) {
    throw InvalidArgument("policy random draws as many heads as a preset or two shares would protect; found --heads " +
                          options.heads);
  }
  return {fmt::format("random:{}:{}", options.seed, options.heads), RandomChoice{options.seed, *shares}};
}

/// Heads kept whole, the most wanted first, and what is said about them.
std::pair<std::vector<HeadId>, std::string> choose_heads(const HeadShape& shape, const PolicyOptions& options,
                                                         const ProfileSource& profile) {
  if (options.heads == "lists" && options.policy != "random") {
    if (options.profile.empty()) {
      throw InvalidArgument("--heads lists needs the file of head lists: --profile FILE.json");
    }
    return {read_head_lists(options.profile, shape).all(), "lists of " + options.profile};
  }
  const HeadChoice choice = parse_choice(options);
  std::optional<HeadScores> scores;
  if (needs_scores(choice)) {
    scores = profile().scores;
    if (!scores) {
      throw InvalidArgument(
          "the head profile holds plans but no scores; name the heads by a list or make a new profile with razorkv "
          "profile");
    }
  }
  std::vector<HeadId> heads = select_heads(choice, shape, scores);
  if (const auto* random = std::get_if<RandomChoice>(&choice.kind)) {
    std::mt19937_64 rng(random->seed);
    draw_to_front(rng, heads, heads.size());
  } else if (scores) {
    sort_by_score(heads, shape, *scores);
  }
  return {std::move(heads), choice.text};
}

PolicyChoice choose_duo(const HeadShape& shape, const PolicyOptions& options) {
  if (options.profile.empty()) {
    throw InvalidArgument(
        "policy duo needs a pattern: --profile with a folder of config.json and full_attention_heads.tsv, or with the "
        "table alone");
  }
  const DuoPattern pattern = read_duo_pattern(options.profile);
  const std::int64_t sinks = pattern.sinks.value_or(options.sinks);
  const std::int64_t window = pattern.window.value_or(options.window);
  return {duo_full_heads(pattern, shape, kDuoSparsity),
          fmt::format("DuoAttention pattern, sparsity {}", kDuoSparsity),
          {false, sinks, window, 0, false},
          {}};
}

RowSelection selection_of(const std::string& name) {
  const std::string by = name.starts_with("razor+") ? name.substr(6) : name;
  if (by == "snapkv") return {RowSelection::By::snapkv, 0, 32, 5, false};
  if (by == "pyramidkv" && by == name) return {RowSelection::By::pyramidkv, 0, 64, 5, false};
  if (by == "h2o") return {RowSelection::By::h2o, 0, 0, 0, false};
  return {};
}

/// The selection with the sizes of the options, its rows to be set.
RowSelection choose_selection(const PolicyOptions& options) {
  RowSelection selection = selection_of(options.policy);
  if (selection.by == RowSelection::By::nothing) {
    if (options.rows != 0) throw InvalidArgument("policy " + options.policy + " keeps windows, not a number of rows");
    return selection;
  }
  if (options.prefill == PrefillMode::streaming) {
    throw InvalidArgument("policy " + options.policy + " needs exact prefill: it chooses rows when the prompt ends");
  }
  if (selection.by == RowSelection::By::h2o) return selection;
  if (options.observation_window != 0) selection.window = options.observation_window;
  if (options.pooling_kernel != 0) selection.kernel = options.pooling_kernel;
  selection.max_pool = options.max_pooling;
  if (selection.window < 1 || selection.window > PromptAttention::kMaxWindow) {
    throw InvalidArgument(fmt::format("the observation window: expected 1 to {} rows, found {}",
                                      PromptAttention::kMaxWindow, selection.window));
  }
  if (selection.kernel < 1 || selection.kernel > kMaxKernel || selection.kernel % 2 == 0) {
    throw InvalidArgument(
        fmt::format("the pooling kernel: expected an odd number up to {}, found {}", kMaxKernel, selection.kernel));
  }
  return selection;
}

PolicyChoice choose(const HeadShape& shape, const PolicyOptions& options, const ProfileSource& profile) {
  const std::string& name = options.policy;
  const HeadRule local{false, options.sinks, options.window, options.window_divisor, name != "razor-nocomp"};
  const RowSelection selection = choose_selection(options);
  if (name == "full") return {shape.eligible(), "all", HeadRule::all(), {}};
  if (selection.by != RowSelection::By::nothing && !name.starts_with("razor+")) {
    return {shape.eligible(), "all", HeadRule::all(), selection};
  }
  if (name == "streaming-llm") {
    return {{}, "none", {false, local.sinks, local.window_floor, local.window_divisor, false}, {}};
  }
  if (name == "duo") return choose_duo(shape, options);
  if (name == "razor" || name == "razor-nocomp" || name == "random" || selection.by != RowSelection::By::nothing) {
    auto [heads, how] = choose_heads(shape, options, profile);
    return {std::move(heads), std::move(how), local, selection};
  }
  throw InvalidArgument("unknown policy \"" + name +
                        "\"; known: full, razor, razor-nocomp, streaming-llm, random, duo, snapkv, pyramidkv, h2o, "
                        "razor+snapkv, razor+h2o");
}

/// "", or what heads that are kept whole otherwise keep of the prompt.
std::string describe_selection(const RowSelection& selection) {
  if (selection.by == RowSelection::By::nothing) return "";
  if (selection.by == RowSelection::By::h2o) {
    return fmt::format(", cut to {} rows: the newest half and the most attended", selection.rows);
  }
  return fmt::format(", cut to {} rows{}: the last {} and those that they attend to most, votes pooled over {} by {}",
                     selection.rows, selection.by == RowSelection::By::pyramidkv ? " in the mean" : "",
                     selection.window, selection.kernel, selection.max_pool ? "maximum" : "mean");
}

std::string describe(const PolicyChoice& choice, const HeadShape& shape, const std::string& name) {
  if (name == "full") return "full: every KV head keeps everything";
  const std::size_t all = shape.eligible().size();
  const HeadRule& local = choice.local;
  std::string text = fmt::format("{}: {} of {} KV heads kept whole ({})", name, choice.heads.size(), all, choice.how);
  text += describe_selection(choice.selection);
  if (choice.heads.size() == all) return text;
  text += fmt::format(", others {} sinks, ", local.sinks);
  text += local.window_divisor > 0 ? fmt::format("window max({}, n/{})", local.window_floor, local.window_divisor)
                                   : fmt::format("window {}", local.window_floor);
  return text + (local.compensate ? ", compensation token" : "");
}

/// Bytes of the options, or their share of what all heads take that keep everything.
KvBudget budget_of(const HeadShape& shape, const PolicyOptions& options, std::int64_t bytes_per_row) {
  KvBudget budget{options.budget_bytes, options.budget_tokens, bytes_per_row};
  if (options.budget_share > 0.0) {
    const PolicyChoice full{shape.eligible(), "", HeadRule::all(), {}};
    budget.bytes =
        static_cast<std::int64_t>(options.budget_share * static_cast<double>(nominal_bytes(full, shape, budget)));
  }
  return budget;
}

void fit(PolicyChoice& choice, const HeadShape& shape, const PolicyOptions& options, std::int64_t bytes_per_row) {
  const KvBudget budget = budget_of(shape, options, bytes_per_row);
  if (choice.selection.by == RowSelection::By::nothing) {
    if (budget.bytes > 0) fit_budget(choice, shape, budget);
    return;
  }
  if (choice.heads.empty()) {
    throw InvalidArgument("policy " + options.policy + " chooses rows in protected heads; there is none");
  }
  const std::int64_t least = std::max<std::int64_t>(2, choice.selection.window);
  if (options.rows > 0) {
    if (budget.bytes > 0) {
      throw InvalidArgument("policy " + options.policy + ": expected rows or a byte budget, not both");
    }
    choice.selection.rows = options.rows;
    if (options.rows < least || options.rows > kMaxRows) {
      throw InvalidArgument(
          fmt::format("rows kept per head: expected {} to {}, found {}", least, kMaxRows, options.rows));
    }
    return;
  }
  if (budget.bytes <= 0) throw InvalidArgument("policy " + options.policy + " needs rows per head or a byte budget");
  fit_selection(choice, shape, budget, least);
}

}  // namespace

Policy::Impl build_policy(const HeadShape& shape, std::int64_t bytes_per_row, const PolicyOptions& options,
                          const ProfileSource& profile) {
  check_sizes(options);
  PolicyChoice choice = choose(shape, options, profile);
  fit(choice, shape, options, bytes_per_row);
  Policy::Impl impl;
  impl.description = describe(choice, shape, options.policy);
  impl.protected_heads = static_cast<std::int64_t>(choice.heads.size());
  HeadPlan plan = make_plan(shape, choice.heads, choice.local, choice.how);
  impl.rules = std::make_shared<const KvPolicy>(
      KvPolicy{options.policy, options.prefill == PrefillMode::streaming, std::move(plan.rules), choice.selection});
  return impl;
}

}  // namespace razorkv
