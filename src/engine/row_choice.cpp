#include "engine/row_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <numeric>

#include "razorkv/error.h"

namespace razorkv {
namespace {

constexpr std::int64_t kPyramidBeta = 20;

std::size_t index(std::int64_t value) { return static_cast<std::size_t>(value); }

void append_range(std::vector<std::int64_t>& positions, std::int64_t begin, std::int64_t end) {
  for (std::int64_t p = begin; p < end; ++p) positions.push_back(p);
}

/// `rows` rows: the last `newest`, and of those before them the most voted for.
std::vector<std::int64_t> with_newest(std::span<const double> votes, std::int64_t newest, std::int64_t rows,
                                      std::int64_t tokens) {
  std::vector<std::int64_t> positions = heaviest_rows(votes, rows - newest);
  append_range(positions, tokens - newest, tokens);
  return positions;
}

std::vector<std::int64_t> choose_head(const RowSelection& selection, std::int64_t rows, std::int64_t layer,
                                      std::int64_t kv_head, const PromptAttention& attention, const HeadRows& head) {
  const std::int64_t tokens = head.tokens();
  if (tokens <= rows) {
    std::vector<std::int64_t> all;
    append_range(all, 0, tokens);
    return all;
  }
  if (selection.by == RowSelection::By::h2o) {
    const std::int64_t newest = rows / 2;
    return with_newest(attention.received(layer, kv_head).first(index(tokens - newest)), newest, rows, tokens);
  }
  const std::vector<double> votes = attention.received_from_last(selection.window, layer, kv_head, head);
  const std::span<const double> before = std::span(votes).first(index(tokens - selection.window));
  return with_newest(pool_votes(before, selection.kernel, selection.max_pool), selection.window, rows, tokens);
}

void check(const RowSelection& selection, const PromptAttention& attention, const KvSequence& sequence) {
  if (selection.by == RowSelection::By::nothing || sequence.compressed()) {
    throw InvalidArgument("rows are chosen for an uncompressed context under a policy that selects rows");
  }
  if (attention.tokens() != sequence.tokens()) {
    throw InvalidArgument(
        fmt::format("attention was recorded for {} rows, the context holds {}", attention.tokens(), sequence.tokens()));
  }
  if (selection.by == RowSelection::By::h2o) {
    if (!attention.accumulates()) throw InvalidArgument("h2o needs the attention of all rows, which was not recorded");
    return;
  }
  if (selection.window < 1 || selection.window > PromptAttention::kMaxWindow || selection.rows < selection.window) {
    throw InvalidArgument(fmt::format("an observation window has 1 to {} rows and fits the {} rows kept, found {}",
                                      PromptAttention::kMaxWindow, selection.rows, selection.window));
  }
}

}  // namespace

std::vector<double> pool_votes(std::span<const double> votes, std::int64_t kernel, bool max_pool) {
  const std::int64_t half = kernel / 2;
  std::vector<double> pooled(votes.size());
  for (std::int64_t i = 0; i < std::ssize(votes); ++i) {
    const std::int64_t begin = std::max<std::int64_t>(0, i - half);
    const std::int64_t end = std::min<std::int64_t>(std::ssize(votes), i + half + 1);
    const std::span<const double> around = votes.subspan(index(begin), index(end - begin));
    pooled[index(i)] = max_pool ? *std::max_element(around.begin(), around.end())
                                : std::accumulate(around.begin(), around.end(), 0.0) / static_cast<double>(kernel);
  }
  return pooled;
}

std::vector<std::int64_t> heaviest_rows(std::span<const double> votes, std::int64_t count) {
  std::vector<std::int64_t> positions(votes.size());
  std::iota(positions.begin(), positions.end(), std::int64_t{0});
  const auto end = positions.begin() + std::clamp<std::int64_t>(count, 0, std::ssize(positions));
  std::partial_sort(positions.begin(), end, positions.end(), [&](std::int64_t a, std::int64_t b) {
    const double vote_a = votes[index(a)];
    const double vote_b = votes[index(b)];
    return vote_a > vote_b || (vote_a == vote_b && a < b);
  });
  positions.erase(end, positions.end());
  std::sort(positions.begin(), positions.end());
  return positions;
}

std::vector<std::int64_t> pyramid_rows(std::int64_t rows, std::int64_t window, std::int64_t layers,
                                       std::int64_t tokens) {
  const std::int64_t mean = std::max<std::int64_t>(0, std::min(rows, tokens) - window);
  std::int64_t least = mean / kPyramidBeta;
  std::int64_t most = 2 * mean - least;
  if (most > tokens - window) {
    most = tokens - window;
    least = 2 * mean - most;
  }
  std::vector<std::int64_t> result(index(layers), window + mean);
  if (layers < 2 || mean == 0) return result;
  for (std::int64_t l = 0; l < layers; ++l) {
    const std::int64_t down = ((most - least) * l + layers - 2) / (layers - 1);  // rounded up
    result[index(l)] = window + most - down;
  }
  return result;
}

RowChoice choose_rows(const PromptAttention& attention, const KvSequence& sequence) try {
  const RowSelection& selection = sequence.policy().selection;
  check(selection, attention, sequence);
  std::vector<std::int64_t> selecting;  // layers with a head that keeps everything
  for (std::int64_t l = 0; l < sequence.layer_count(); ++l) {
    const std::span<const HeadRows> heads = sequence.layer(l);
    if (std::ranges::any_of(heads, [](const HeadRows& head) { return head.rule().everything; })) selecting.push_back(l);
  }
  std::vector<std::int64_t> rows(selecting.size(), selection.rows);
  if (selection.by == RowSelection::By::pyramidkv) {
    rows = pyramid_rows(selection.rows, selection.window, std::ssize(selecting), sequence.tokens());
  }
  RowChoice choice;
  for (std::int64_t l = 0; l < sequence.layer_count(); ++l) choice.emplace_back(sequence.layer(l).size());
  for (std::size_t i = 0; i < selecting.size(); ++i) {
    const std::span<const HeadRows> heads = sequence.layer(selecting[i]);
    for (std::size_t h = 0; h < heads.size(); ++h) {
      if (!heads[h].rule().everything) continue;
      choice[index(selecting[i])][h] =
          choose_head(selection, rows[i], selecting[i], static_cast<std::int64_t>(h), attention, heads[h]);
    }
  }
  return choice;
} catch (const std::bad_alloc&) {
  throw OutOfMemory("the system gave no memory to choose the rows to keep");
}

}  // namespace razorkv
