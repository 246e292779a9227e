#include "heads/head_selection.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "heads/bounded_draw.h"
#include "razorkv/error.h"

namespace razorkv {
namespace {

std::vector<HeadId> by_shares(const ShareChoice& shares, const HeadShape& shape,
                              const std::optional<HeadScores>& scores, std::string_view text) {
  if (!scores) {
    throw InvalidArgument(fmt::format(
        "--heads '{}' needs induction and echo scores, and the profile has none: run razorkv profile", text));
  }
  const KvHeadScores kv = kv_head_scores(shape, *scores);
  std::vector<HeadId> chosen;
  const auto take_top = [&](double share, const std::vector<std::vector<double>>& kv_scores) {
    const std::vector<HeadId> ranked = rank_heads(shape, kv_scores);
    const std::int64_t count = share_count(share, static_cast<std::int64_t>(ranked.size()));
    chosen.insert(chosen.end(), ranked.begin(), ranked.begin() + count);
  };
  take_top(shares.induction, kv.induction);
  take_top(shares.echo, kv.echo);
  std::sort(chosen.begin(), chosen.end());
  chosen.erase(std::unique(chosen.begin(), chosen.end()), chosen.end());
  return chosen;
}

std::vector<HeadId> checked_list(const ListChoice& list, const HeadShape& shape, std::string_view text) {
  for (const HeadId head : list.heads) {
    if (!shape.contains(head)) {
      throw InvalidArgument(
          fmt::format("--heads '{}': the model has no KV head {}:{}; it has {} layers, counted from 0", text,
                      head.layer, head.kv_head, shape.layers.size()));
    }
    if (shape.layers[static_cast<std::size_t>(head.layer)].sliding) {
      throw InvalidArgument(
          fmt::format("--heads '{}': layer {} has the model's own sliding window of {} rows and cannot be protected",
                      text, head.layer, shape.sliding_window));
    }
  }
  return list.heads;
}

std::vector<HeadId> at_random(std::uint64_t seed, std::int64_t count, const HeadShape& shape, std::string_view text) {
  std::vector<HeadId> heads = shape.eligible();
  if (count > static_cast<std::int64_t>(heads.size())) {
    throw InvalidArgument(fmt::format("--heads '{}': {} heads wanted, the model has {} that can be protected", text,
                                      count, heads.size()));
  }
  std::mt19937_64 rng(seed);
  draw_to_front(rng, heads, static_cast<std::size_t>(count));
  heads.resize(static_cast<std::size_t>(count));
  std::sort(heads.begin(), heads.end());
  return heads;
}

}  // namespace

std::int64_t share_count(double share, std::int64_t heads) {
  if (share <= 0.0 || heads == 0) return 0;
  // 0.29 * 100 is 28.999...: a share that means a whole number of heads must not lose one to rounding.
  const auto count = static_cast<std::int64_t>(std::floor(share * static_cast<double>(heads) + 1e-9));
  return std::clamp<std::int64_t>(count, 1, heads);
}

std::vector<HeadId> rank_heads(const HeadShape& shape, const std::vector<std::vector<double>>& kv_scores) {
  std::vector<HeadId> heads = shape.eligible();
  const auto score = [&](HeadId head) {
    return kv_scores[static_cast<std::size_t>(head.layer)][static_cast<std::size_t>(head.kv_head)];
  };
  std::stable_sort(heads.begin(), heads.end(), [&](HeadId a, HeadId b) { return score(a) > score(b); });
  return heads;
}

bool needs_scores(const HeadChoice& choice) {
  if (const auto* random = std::get_if<RandomChoice>(&choice.kind)) {
    return std::holds_alternative<ShareChoice>(random->count);
  }
  return std::holds_alternative<ShareChoice>(choice.kind);
}

std::vector<HeadId> select_heads(const HeadChoice& choice, const HeadShape& shape,
                                 const std::optional<HeadScores>& scores) {
  if (const auto* shares = std::get_if<ShareChoice>(&choice.kind)) {
    return by_shares(*shares, shape, scores, choice.text);
  }
  if (const auto* list = std::get_if<ListChoice>(&choice.kind)) return checked_list(*list, shape, choice.text);
  if (const auto* random = std::get_if<RandomChoice>(&choice.kind)) {
    const auto* count = std::get_if<std::int64_t>(&random->count);
    const std::int64_t heads =
        count != nullptr ? *count
                         : static_cast<std::int64_t>(
                               by_shares(std::get<ShareChoice>(random->count), shape, scores, choice.text).size());
    return at_random(random->seed, heads, shape, choice.text);
  }
  return std::holds_alternative<AllChoice>(choice.kind) ? shape.eligible() : std::vector<HeadId>{};
}

}  // namespace razorkv
