// razorkv profile: score the heads of a model. razorkv profile compare: how much two profiles agree.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <string>
#include <vector>

#include "base/atomic_file.h"
#include "base/process_memory.h"
#include "base/stopwatch.h"
#include "cli/commands.h"
#include "cli/common_options.h"
#include "cli/interrupt.h"
#include "cli/progress_bar.h"
#include "cli/report.h"
#include "engine/model_profile.h"
#include "heads/head_selection.h"
#include "heads/profile_report.h"
#include "razorkv/error.h"

namespace razorkv::cli {
namespace {

using nlohmann::json;

struct ProfileArguments {
  ModelArguments model;
  ProfilingOptions profiling;
  std::string ids;
  std::string rope = "post";
  std::string prefix = "auto";
  std::string heads = "wide";
  std::string output;
  std::string svg;
  std::int64_t rows = 10;
  bool as_json = false;
};

struct CompareArguments {
  std::string first, second;
  std::string heads = "wide";
  bool as_json = false;
};

void set_id_range(const std::string& text, ScoringPromptSettings& prompt) {
  const char* const end = text.data() + text.size();
  const auto [colon, low_error] = std::from_chars(text.data(), end, prompt.id_low);
  if (low_error == std::errc{} && colon != end && *colon == ':') {
    const auto [last, high_error] = std::from_chars(colon + 1, end, prompt.id_high);
    if (high_error == std::errc{} && last == end && prompt.id_high > prompt.id_low) return;
  }
  throw InvalidArgument("--ids: expected LOW:HIGH with LOW below HIGH, found '" + text + "'");
}

ScoringPrefix prefix_kind(const std::string& name) {
  if (name == "bos") return ScoringPrefix::bos;
  return name == "none" ? ScoringPrefix::none : ScoringPrefix::as_prompts;
}

json heads_json(const std::vector<HeadId>& heads) {
  json out = json::array();
  for (const HeadId head : heads) out.push_back({head.layer, head.kv_head});
  return out;
}

std::string heads_text(const std::vector<HeadId>& heads) {
  std::string out;
  for (const HeadId head : heads) out += fmt::format("{}{}:{}", out.empty() ? "" : ",", head.layer, head.kv_head);
  return out.empty() ? "none" : out;
}

/// Least agreement of any two seeds.
struct Stability {
  double induction = 1.0, echo = 1.0, jaccard = 1.0;
};

Stability stability(const std::vector<HeadProfile>& profiles, const HeadChoice& choice) {
  Stability least;
  std::vector<std::vector<HeadId>> chosen;
  chosen.reserve(profiles.size());
  for (const HeadProfile& one : profiles) chosen.push_back(select_heads(choice, one.model.shape, one.scores));
  for (std::size_t a = 0; a < profiles.size(); ++a) {
    for (std::size_t b = a + 1; b < profiles.size(); ++b) {
      const ProfileComparison pair = compare_profiles(profiles[a], chosen[a], profiles[b], chosen[b]);
      least.induction = std::min(least.induction, pair.induction);
      least.echo = std::min(least.echo, pair.echo);
      least.jaccard = std::min(least.jaccard, pair.chosen.jaccard);
    }
  }
  return least;
}

void run_profile(const ProfileArguments& arguments) {
  if (arguments.model.path.empty()) throw InvalidArgument("razorkv profile needs a model: -m FILE");
  if (arguments.rows < 0) throw InvalidArgument(fmt::format("--rows: expected 0 or more, found {}", arguments.rows));
  ProfilingOptions profiling = arguments.profiling;
  if (!arguments.ids.empty()) set_id_range(arguments.ids, profiling.prompt);
  profiling.before_rope = arguments.rope == "pre";
  profiling.prefix = prefix_kind(arguments.prefix);
  const HeadChoice choice = parse_head_choice(arguments.heads);
  const Model model = arguments.model.load();

  const Stopwatch watch;
  std::vector<HeadProfile> per_seed;
  {
    InterruptScope interrupt;
    ProgressBar bar("head profile");
    try {
      per_seed = make_profiles(model, profiling, bar.progress());
    } catch (const Cancelled& cancelled) {
      print_note(std::string("stopped: ") + cancelled.what());
      throw ExitWith{kExitInterrupted};
    }
  }
  const double seconds = watch.seconds();

  HeadProfile profile = mean_profile(per_seed);
  const std::vector<HeadId> chosen = select_heads(choice, profile.model.shape, profile.scores);
  const HeadRule local{false, PolicyOptions{}.sinks, PolicyOptions{}.window, PolicyOptions{}.window_divisor, true};
  profile.plans[choice.text] = make_plan(profile.model.shape, chosen, local, "--heads " + choice.text);
  const std::string path = arguments.output.empty() ? profile_cache_path(profile.model.fingerprint) : arguments.output;
  write_profile(path, profile);
  if (!arguments.svg.empty()) write_file_atomically(arguments.svg, heat_map_svg(profile, chosen));

  const Stability least = stability(per_seed, choice);
  if (arguments.as_json) {
    json out = json::parse(profile_to_json(profile));
    out["path"] = path;
    out["heads"] = choice.text;
    out["chosen"] = heads_json(chosen);
    out["seconds"] = seconds;
    out["peak_bytes"] = process_memory().peak;
    if (per_seed.size() > 1) {
      out["stability"] = {
          {"induction_spearman", least.induction}, {"echo_spearman", least.echo}, {"chosen_jaccard", least.jaccard}};
    }
    print_json(out);
    return;
  }
  const ScoringFacts& facts = *profile.scoring;
  fmt::print("{}\n", top_heads_table(profile, chosen, arguments.rows));
  fmt::print("chosen by {}: {} of {} KV heads: {}\n", choice.text, chosen.size(), profile.model.shape.eligible().size(),
             heads_text(chosen));
  if (per_seed.size() > 1) {
    fmt::print(
        "least agreement of two of {} seeds: rank correlation {:.3f} induction, {:.3f} echo; chosen sets {:.2f} "
        "(shared / all)\n",
        per_seed.size(), least.induction, least.echo, least.jaccard);
  }
  const char* const shortened = facts.block < profiling.prompt.block ? " (short context)" : "";
  fmt::print("{} ids{} x {}, {} seed{}, {}-RoPE, {:.1f} s, peak memory {}\nwritten to {}\n", facts.block, shortened,
             facts.repeats, facts.seeds.size(), facts.seeds.size() == 1 ? "" : "s", arguments.rope, seconds,
             byte_text(process_memory().peak), path);
}

void run_compare(const CompareArguments& arguments) {
  const HeadChoice choice = parse_head_choice(arguments.heads);
  const HeadProfile first = read_profile(arguments.first);
  const HeadProfile second = read_profile(arguments.second);
  if (first.model.fingerprint != second.model.fingerprint) {
    print_note(
        fmt::format("note: the profiles are of different models, '{}' and '{}'", first.model.name, second.model.name));
  }
  const std::vector<HeadId> a = select_heads(choice, first.model.shape, first.scores);
  const std::vector<HeadId> b = select_heads(choice, second.model.shape, second.scores);
  const ProfileComparison result = compare_profiles(first, a, second, b);
  if (arguments.as_json) {
    print_json({{"heads", choice.text},
                {"induction_spearman", result.induction},
                {"echo_spearman", result.echo},
                {"chosen_first", heads_json(a)},
                {"chosen_second", heads_json(b)},
                {"chosen_both", result.chosen.both},
                {"chosen_jaccard", result.chosen.jaccard}});
    return;
  }
  fmt::print("rank correlation (Spearman): induction {:.3f}, echo {:.3f}\n", result.induction, result.echo);
  fmt::print("chosen by {}: {} and {} KV heads, {} in both, shared / all = {:.2f}\n", choice.text, result.chosen.first,
             result.chosen.second, result.chosen.both, result.chosen.jaccard);
  std::vector<HeadId> only_first, only_second;
  std::set_difference(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(only_first));
  std::set_difference(b.begin(), b.end(), a.begin(), a.end(), std::back_inserter(only_second));
  fmt::print("only in the first: {}\nonly in the second: {}\n", heads_text(only_first), heads_text(only_second));
}

void add_compare(CLI::App& profile, const std::shared_ptr<CompareArguments>& arguments) {
  CLI::App* command = profile.add_subcommand("compare", "Rank correlation and overlap of two profiles of one model");
  command->add_option("first", arguments->first, "Profile")->required()->type_name("FILE");
  command->add_option("second", arguments->second, "Profile")->required()->type_name("FILE");
  command->add_option("--heads", arguments->heads, "Choice whose sets are compared")->capture_default_str();
  command->add_flag("--json", arguments->as_json, "Print one JSON document");
  command->callback([arguments] { run_compare(*arguments); });
}

}  // namespace

void add_profile_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("profile", "Find the retrieval heads of a model");
  const auto arguments = std::make_shared<ProfileArguments>();
  arguments->model.add(*command);
  command->get_option("--model")->required(false);  // compare needs none
  ScoringPromptSettings& prompt = arguments->profiling.prompt;
  command->add_option("--block", prompt.block, "Random ids of the block (shorter where the context is short)")
      ->capture_default_str();
  command->add_option("--repeats", prompt.repeats, "Copies of the block")->capture_default_str();
  command->add_option("-s,--seed", arguments->profiling.seeds, "Seeds; scores are averaged over them (repeat or list)")
      ->delimiter(',')
      ->capture_default_str();
  command->add_option("--ids", arguments->ids, "Range of the random ids (default: all ordinary tokens)")
      ->type_name("LOW:HIGH");
  command->add_flag("--distinct", prompt.distinct, "No id twice in the block");
  command->add_option("--prefix", arguments->prefix, "BOS in front: auto (as the model's prompts have it), bos or none")
      ->check(CLI::IsMember({"auto", "bos", "none"}))
      ->capture_default_str();
  command->add_option("--rope", arguments->rope, "Score queries and keys before (pre) or after (post) RoPE")
      ->check(CLI::IsMember({"pre", "post"}))
      ->capture_default_str();
  command->add_option("--heads", arguments->heads, "Choice of heads that is shown and marked")->capture_default_str();
  command->add_option("-t,--threads", arguments->profiling.threads, "Threads; 0 = all processors that may be used")
      ->capture_default_str();
  command->add_option("--ubatch-size", arguments->profiling.micro_batch, "-ub: tokens of a micro-batch")
      ->capture_default_str();
  command->add_option("-o,--output", arguments->output, "Profile file (default: in the cache folder, found later)")
      ->type_name("FILE");
  command->add_option("--svg", arguments->svg, "Heat map of both scores")->type_name("FILE");
  command->add_option("--rows", arguments->rows, "Heads in the table")->capture_default_str();
  command->add_flag("--json", arguments->as_json, "Print one JSON document instead of the table");
  add_compare(*command, std::make_shared<CompareArguments>());
  command->callback([command, arguments] {
    if (command->get_subcommands().empty()) run_profile(*arguments);
  });
}

}  // namespace razorkv::cli
