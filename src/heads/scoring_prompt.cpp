#include "heads/scoring_prompt.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>

#include "heads/bounded_draw.h"
#include "razorkv/error.h"

namespace razorkv {
namespace {

std::vector<std::int32_t> usable_ids(const ScoringPromptSettings& settings, std::int64_t low, std::int64_t high) {
  std::vector<std::int32_t> ids;
  for (std::int64_t id = low; id < high; ++id) {
    const auto token = static_cast<std::int32_t>(id);
    if (!settings.usable || settings.usable(token)) ids.push_back(token);
  }
  return ids;
}

std::vector<std::int32_t> draw_block(const ScoringPromptSettings& settings, std::vector<std::int32_t> ids,
                                     std::int64_t block) {
  std::mt19937_64 rng(settings.seed);
  const auto count = static_cast<std::size_t>(block);
  if (settings.distinct) {
    draw_to_front(rng, ids, count);
    ids.resize(count);
    return ids;
  }
  std::vector<std::int32_t> drawn(count);
  for (std::int32_t& id : drawn) id = ids[bounded_draw(rng, ids.size())];
  return drawn;
}

}  // namespace

ScoringPrompt make_scoring_prompt(const ScoringPromptSettings& settings, const ScoringVocabulary& vocabulary,
                                  std::int64_t context) {
  if (settings.block < 1) throw InvalidArgument(fmt::format("--block: expected at least 1, found {}", settings.block));
  if (settings.repeats < 2) {
    throw InvalidArgument(fmt::format("--repeats: expected at least 2, found {}", settings.repeats));
  }
  ScoringPrompt prompt;
  prompt.repeats = settings.repeats;
  prompt.seed = settings.seed;
  prompt.distinct = settings.distinct;
  prompt.id_low = settings.id_low;
  prompt.id_high = settings.id_high < 0 ? vocabulary.size : settings.id_high;
  if (prompt.id_low < 0 || prompt.id_low >= prompt.id_high || prompt.id_high > vocabulary.size) {
    throw InvalidArgument(fmt::format("--ids: expected a range within 0:{}, found {}:{}", vocabulary.size,
                                      prompt.id_low, prompt.id_high));
  }
  prompt.block = std::min(settings.block, (context - 1) / settings.repeats);
  if (prompt.block < 1) {
    throw InvalidArgument(fmt::format("scoring prompt: a context of {} tokens is too short for {} repeats of one token",
                                      context, settings.repeats));
  }
  std::vector<std::int32_t> ids = usable_ids(settings, prompt.id_low, prompt.id_high);
  const std::int64_t needed = settings.distinct ? prompt.block : 1;
  if (static_cast<std::int64_t>(ids.size()) < needed) {
    throw InvalidArgument(fmt::format("--ids: expected at least {} usable ids in {}:{}, found {}", needed,
                                      prompt.id_low, prompt.id_high, ids.size()));
  }
  const std::vector<std::int32_t> block = draw_block(settings, std::move(ids), prompt.block);
  if (vocabulary.bos) prompt.tokens.push_back(*vocabulary.bos);
  prompt.prefix = static_cast<std::int64_t>(prompt.tokens.size());
  for (std::int64_t i = 0; i < prompt.repeats; ++i)
    prompt.tokens.insert(prompt.tokens.end(), block.begin(), block.end());
  return prompt;
}

}  // namespace razorkv
