// razorkv eval needle: what a policy still finds in a long text.
#include <fmt/format.h>

#include <atomic>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>

#include "base/atomic_file.h"
#include "base/sha256.h"
#include "cli/commands.h"
#include "cli/common_options.h"
#include "cli/interrupt.h"
#include "cli/progress_bar.h"
#include "cli/report.h"
#include "engine/model_handle.h"
#include "eval/haystack.h"
#include "eval/needle_report.h"
#include "razorkv/error.h"

namespace razorkv::cli {
namespace {

struct NeedleArguments {
  ModelArguments model;
  SessionArguments session;
  PolicyOptions policy;
  NeedleSettings task;
  std::string haystack;
  std::int64_t from = 0;
  std::string policies = "full,razor:paper,razor:safe,razor:wide,none,random:paper:1,random:safe:1,random:wide:1";
  std::int64_t new_tokens = 9;
  std::string json_file;
};

void run_needle(const NeedleArguments& arguments) {
  NeedleRunOptions options;
  options.session = arguments.session.options();
  options.new_tokens = arguments.new_tokens;
  if (arguments.new_tokens < 1) {
    throw InvalidArgument(fmt::format("-n: expected 1 or more, found {}", arguments.new_tokens));
  }
  const std::vector<PolicyColumn> columns = parse_policy_columns(arguments.policies, arguments.policy);
  const std::string text = read_haystack(arguments.haystack);
  const std::string_view haystack = from_character(text, arguments.from);
  const Model model = arguments.model.load();
  const Vocabulary& vocabulary = *model.impl()->vocabulary;
  const NeedleTask task = make_needle_task(haystack, arguments.task, [&](std::string_view piece, bool special) {
    return vocabulary.tokenize(piece, false, special);
  });

  std::atomic<bool> cancel{false};
  options.cancel = &cancel;
  InterruptScope interrupt(&cancel);
  NeedleResult result;
  try {
    ProgressBar bar("needles");
    result = run_needles(model, task, columns, options, bar.progress());
  } catch (const Cancelled&) {
    print_note("stopped: interrupted; nothing was written");
    throw ExitWith{kExitInterrupted};
  }
  const NeedleFacts facts{model.info().name,
                          sha256_of_file(arguments.model.path),
                          std::filesystem::path(arguments.haystack).filename().string(),
                          arguments.from,
                          arguments.task.seed,
                          arguments.task.length,
                          arguments.new_tokens,
                          options.session.kv_type};
  fmt::print("{}", needle_markdown(facts, task, result));
  std::fflush(stdout);
  if (!arguments.json_file.empty()) {
    write_file_atomically(
        arguments.json_file,
        needle_json(facts, task, result).dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
  }
  print_note(fmt::format("prefill {:.1f} s", result.prefill_seconds));
}

void add_needle(CLI::App& eval) {
  CLI::App* command = eval.add_subcommand(
      "needle", "Numbers hidden in a long text, asked for after compression; one prefill for all policies");
  const auto arguments = std::make_shared<NeedleArguments>();
  arguments->model.add(*command);
  command->add_option("--haystack", arguments->haystack, "Text file, or JSON with the text in \"text\"")
      ->required()
      ->type_name("FILE");
  command->add_option("--from", arguments->from, "Character of the text at which the haystack begins")
      ->capture_default_str();
  command->add_option("--length", arguments->task.length, "Tokens of the whole context")->capture_default_str();
  command->add_option("--depths", arguments->task.depths, "Places of the needles, percent of the haystack's tokens")
      ->delimiter(',')
      ->capture_default_str();
  command->add_option("-s,--seed", arguments->task.seed, "Seed of numbers and order of the cities")
      ->capture_default_str();
  command
      ->add_option("--policies", arguments->policies,
                   "full, none, all, streaming-llm, razor:HEADS, razor-nocomp:HEADS, random:COUNT:SEED; commas between")
      ->capture_default_str();
  arguments->policy.window = 1;
  command->add_option("--keep,--sinks", arguments->policy.sinks, "First tokens that every head keeps")
      ->capture_default_str();
  command->add_option("--window", arguments->policy.window, "Last tokens that a head keeps, at least")
      ->capture_default_str();
  command->add_option("--window-div", arguments->policy.window_divisor, "The window is at least context / this")
      ->capture_default_str();
  command->add_option("--profile", arguments->policy.profile, "Head profile (default: looked up or made)")
      ->type_name("FILE");
  command->add_option("-n,--n-predict", arguments->new_tokens, "Tokens of an answer")->capture_default_str();
  arguments->session.add(*command);
  command->remove_option(command->get_option("--ctx-size"));
  command->add_option("--json", arguments->json_file, "Write everything, with every answer, to this file")
      ->type_name("FILE");
  command->callback([arguments] { run_needle(*arguments); });
}

}  // namespace

void add_eval_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("eval", "Measure what a policy costs");
  command->require_subcommand(1);
  add_needle(*command);
}

}  // namespace razorkv::cli
