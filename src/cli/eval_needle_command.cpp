// razorkv eval needle: what a policy still finds in a long text.
#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <string>

#include "base/sha256.h"
#include "cli/eval_commands.h"
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
  ColumnArguments columns;
  NeedleSettings task;
  std::string haystack;
  std::int64_t from = 0;
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
  const std::vector<PolicyColumn> columns = parse_policy_columns(arguments.columns.policies, arguments.columns.policy);
  const std::string text = read_haystack(arguments.haystack);
  const std::string_view haystack = from_character(text, arguments.from);
  const Model model = arguments.model.load();
  const Vocabulary& vocabulary = *model.impl()->vocabulary;
  const NeedleTask task = make_needle_task(haystack, arguments.task, [&](std::string_view piece, bool special) {
    return vocabulary.tokenize(piece, false, special);
  });

  NeedleResult result;
  run_interruptible("stopped: interrupted; nothing was written", [&](const std::atomic<bool>* cancel) {
    options.cancel = cancel;
    ProgressBar bar("needles");
    result = run_needles(model, task, columns, options, bar.progress());
  });
  const NeedleFacts facts{model.info().name,
                          sha256_of_file(arguments.model.path),
                          file_name(arguments.haystack),
                          arguments.from,
                          arguments.task.seed,
                          arguments.task.length,
                          arguments.new_tokens,
                          options.session.kv_type};
  fmt::print("{}", needle_markdown(facts, task, result));
  std::fflush(stdout);
  write_json_file(arguments.json_file, needle_json(facts, task, result));
  print_note(fmt::format("prefill {:.1f} s", result.prefill_seconds));
}

}  // namespace

void add_eval_needle_command(CLI::App& eval) {
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
  arguments->columns.policies =
      "full,razor:paper,razor:safe,razor:wide,none,random:paper:1,random:safe:1,random:wide:1";
  arguments->columns.add(*command);
  command->add_option("-n,--n-predict", arguments->new_tokens, "Tokens of an answer")->capture_default_str();
  arguments->session.add(*command);
  command->remove_option(command->get_option("--ctx-size"));
  command->add_option("--json", arguments->json_file, "Write everything, with every answer, to this file")
      ->type_name("FILE");
  command->callback([arguments] { run_needle(*arguments); });
}

}  // namespace razorkv::cli
