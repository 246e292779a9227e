#include <fmt/format.h>

#include <algorithm>

#include "engine/policy_choice.h"
#include "razorkv/error.h"

namespace razorkv {
namespace {

constexpr std::int64_t kNarrowestWindow = 64;  // a share of the context: tokens / 64

}  // namespace

std::int64_t nominal_bytes(const PolicyChoice& choice, const HeadShape& shape, const KvBudget& budget) {
  const std::int64_t n = budget.tokens;
  const HeadRule& local = choice.local;
  const std::int64_t local_rows =
      local.everything ? n : std::min(n, local.sinks + (local.compensate ? 1 : 0) + local.window(n));
  const auto whole = static_cast<std::int64_t>(choice.heads.size());
  const auto eligible = static_cast<std::int64_t>(shape.eligible().size());
  const std::int64_t whole_rows =
      choice.selection.by == RowSelection::By::nothing ? n : std::min(n, choice.selection.rows);
  std::int64_t rows = whole * whole_rows + (eligible - whole) * local_rows;
  for (const LayerHeads& layer : shape.layers) {
    if (layer.sliding) rows += layer.kv_heads * std::min(n, shape.sliding_window);
  }
  return rows * budget.bytes_per_row;
}

void fit_budget(PolicyChoice& choice, const HeadShape& shape, const KvBudget& budget) {
  const auto fits = [&] { return nominal_bytes(choice, shape, budget) <= budget.bytes; };
  if (fits()) return;
  const auto refuse = [&](const std::string& what) {
    throw InvalidArgument(fmt::format("a KV budget of {} bytes is too small for {} tokens: {} would take {} bytes",
                                      budget.bytes, budget.tokens, what, nominal_bytes(choice, shape, budget)));
  };
  if (choice.local.everything) refuse("the full cache");

  const std::int64_t narrowest = std::max<std::int64_t>(1, budget.tokens / kNarrowestWindow);
  const std::size_t wanted = choice.heads.size();
  choice.local.window_floor = narrowest;
  choice.local.window_divisor = 0;
  while (!fits() && !choice.heads.empty()) choice.heads.pop_back();
  if (!fits()) refuse(fmt::format("{} sinks, windows of {} rows and no protected head", choice.local.sinks, narrowest));

  std::int64_t widest = narrowest;  // that fits
  for (std::int64_t above = budget.tokens + 1; above - widest > 1;) {
    const std::int64_t middle = widest + (above - widest) / 2;
    choice.local.window_floor = middle;
    (fits() ? widest : above) = middle;
  }
  choice.local.window_floor = widest;
  choice.how += choice.heads.size() < wanted ? fmt::format(", cut from {} heads by the budget", wanted)
                                             : ", window by the budget";
}

void fit_selection(PolicyChoice& choice, const HeadShape& shape, const KvBudget& budget, std::int64_t least) {
  const auto selecting = static_cast<std::int64_t>(choice.heads.size());
  choice.selection.rows = 0;
  const std::int64_t left = budget.bytes - nominal_bytes(choice, shape, budget);
  const std::int64_t rows = left < 0 ? 0 : left / (selecting * budget.bytes_per_row);
  if (rows < least) {
    choice.selection.rows = least;
    throw InvalidArgument(fmt::format(
        "a KV budget of {} bytes is too small for {} tokens: {} rows in {} heads and the other heads' windows take {}",
        budget.bytes, budget.tokens, least, selecting, nominal_bytes(choice, shape, budget)));
  }
  choice.selection.rows = std::min(rows, budget.tokens);
}

}  // namespace razorkv
