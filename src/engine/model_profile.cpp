#include "engine/model_profile.h"

#include <fmt/format.h>
#include <llama.h>

#include <algorithm>
#include <thread>

#include "engine/engine.h"
#include "engine/model_handle.h"
#include "engine/score_observer.h"
#include "heads/profile_report.h"
#include "razorkv/error.h"
#include "razorkv/version.h"

namespace razorkv {
namespace {

bool is_ordinary(const Vocabulary& vocabulary, Token token) {
  const auto attributes = static_cast<unsigned>(llama_vocab_get_attr(vocabulary.handle(), token));
  constexpr unsigned excluded = LLAMA_TOKEN_ATTR_CONTROL | LLAMA_TOKEN_ATTR_UNUSED | LLAMA_TOKEN_ATTR_UNKNOWN;
  return (attributes & excluded) == 0 && !vocabulary.is_end_of_generation(token);
}

ScoringPrompt prompt_for(const Model& model, const ProfilingOptions& options, std::uint64_t seed) {
  const Vocabulary& vocabulary = *model.impl()->vocabulary;
  ScoringPromptSettings settings = options.prompt;
  settings.seed = seed;
  if (!settings.usable) settings.usable = [&](Token token) { return is_ordinary(vocabulary, token); };
  ScoringVocabulary facts;
  facts.size = std::min(vocabulary.size(), model.impl()->loaded->config().vocabulary);
  const bool wanted =
      options.prefix == ScoringPrefix::bos || (options.prefix == ScoringPrefix::as_prompts && vocabulary.adds_bos());
  if (wanted && vocabulary.bos() >= 0) facts.bos = vocabulary.bos();
  return make_scoring_prompt(settings, facts, model.impl()->loaded->config().context);
}

/// Runs the prompt through the observer, `done` tokens of `total` before it.
void run_prompt(Engine& engine, ScoreObserver& observer, const ScoringPrompt& prompt, std::int64_t micro_batch,
                std::int64_t done, std::int64_t total, const Progress& progress) {
  KvSequence sequence = engine.new_sequence(engine.full_policy());
  engine.set_observer(&observer);
  const std::span<const Token> tokens(prompt.tokens);
  for (std::size_t begin = 0; begin < tokens.size();) {
    const std::size_t count = std::min(tokens.size() - begin, static_cast<std::size_t>(micro_batch));
    const BatchItem item{&sequence, tokens.subspan(begin, count), 0};
    engine.decode({&item, 1});
    if (observer.error()) std::rethrow_exception(observer.error());
    begin += count;
    if (progress && !progress(done + static_cast<std::int64_t>(begin), total)) {
      throw Cancelled("profiling was stopped; nothing was written");
    }
  }
}

int usable_threads() { return std::max(1, static_cast<int>(std::thread::hardware_concurrency())); }

}  // namespace

ProfileModel profile_model_facts(const Model& model) {
  const LoadedModel& loaded = *model.impl()->loaded;
  return {loaded.fingerprint(), loaded.config().architecture, loaded.config().name, HeadShape::of(loaded.config())};
}

std::vector<HeadProfile> make_profiles(const Model& model, const ProfilingOptions& options, const Progress& progress) {
  if (options.seeds.empty()) throw InvalidArgument("--seed: expected at least one seed, found none");
  if (options.micro_batch < 1) {
    throw InvalidArgument(fmt::format("micro-batch: expected at least 1 token, found {}", options.micro_batch));
  }
  EngineSettings settings;
  settings.threads = settings.threads_batch = options.threads > 0 ? options.threads : usable_threads();
  settings.row_type = RowType::f32;
  const std::shared_ptr<const LoadedModel>& loaded = model.impl()->loaded;

  std::vector<HeadProfile> profiles;
  for (const std::uint64_t seed : options.seeds) {
    const ScoringPrompt prompt = prompt_for(model, options, seed);
    const auto length = static_cast<std::int64_t>(prompt.tokens.size());
    ScoreObserver observer(loaded->config(), prompt, options.before_rope);
    Engine engine(loaded, settings);
    run_prompt(engine, observer, prompt, options.micro_batch, length * static_cast<std::int64_t>(profiles.size()),
               length * static_cast<std::int64_t>(options.seeds.size()), progress);
    HeadProfile& profile = profiles.emplace_back();
    profile.model = profile_model_facts(model);
    profile.engine_version = version();
    profile.scoring =
        ScoringFacts{prompt.block,      prompt.repeats,     {seed}, prompt.id_low, prompt.id_high, prompt.distinct,
                     prompt.prefix > 0, options.before_rope};
    profile.scores = observer.mean();
  }
  return profiles;
}

HeadProfile make_profile(const Model& model, const ProfilingOptions& options, const Progress& progress) {
  return mean_profile(make_profiles(model, options, progress));
}

HeadProfile find_or_make_profile(const Model& model, const PolicyOptions& options, const Progress& progress) {
  const ProfileModel facts = profile_model_facts(model);
  if (!options.profile.empty()) {
    HeadProfile profile = read_profile(options.profile);
    require_model(profile, facts, options.profile);
    return profile;
  }
  const std::vector<std::string> places = profile_places(model.impl()->loaded->path(), facts.fingerprint);
  if (std::optional<FoundProfile> found = find_profile(places, facts)) return std::move(found->profile);
  if (!options.create_profile) {
    throw FileError(
        fmt::format("no head profile of this model at {}: make one with razorkv profile", fmt::join(places, ", ")));
  }
  HeadProfile profile = make_profile(model, {}, progress);
  try {
    write_profile(profile_cache_path(facts.fingerprint), profile);
  } catch (const FileError&) {
    // A cache folder that cannot be written costs the next start a new profile, not this one its work.
  }
  return profile;
}

}  // namespace razorkv
