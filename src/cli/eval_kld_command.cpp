// razorkv eval kld: what compression changes in the distribution of the next token.
#include <fmt/format.h>

#include <cstdio>
#include <memory>

#include "base/sha256.h"
#include "cli/eval_commands.h"
#include "cli/progress_bar.h"
#include "cli/report.h"
#include "engine/model_handle.h"
#include "eval/haystack.h"
#include "eval/perplexity/kld_base_file.h"
#include "eval/perplexity/kld_report.h"
#include "razorkv/error.h"

namespace razorkv::cli {
namespace {

struct KldArguments {
  ModelArguments model;
  SessionArguments session;
  ColumnArguments columns;
  std::string file;
  std::int64_t from = 0;
  std::int64_t chunks = 0;
  KldOptions options;
  std::string json_file;
};

/// The chunks to score: of the text, or of the base file.
TextChunks chunks_of(const KldArguments& arguments, const Vocabulary& vocabulary) {
  if (!arguments.file.empty()) {
    const std::string text = read_haystack(arguments.file);
    return cut_text(vocabulary, from_character(text, arguments.from), arguments.session.context, arguments.chunks);
  }
  if (arguments.options.base_file.empty()) throw InvalidArgument("give a text with -f, or a base file with --base");
  TextChunks chunks = KldBaseReader(arguments.options.base_file).chunks();
  if (vocabulary.adds_bos()) chunks.bos = vocabulary.bos();
  if (arguments.chunks > 0 && arguments.chunks < chunks.count()) {
    chunks.tokens.resize(static_cast<std::size_t>(arguments.chunks * chunks.context));
  }
  return chunks;
}

void run_kld_command(const KldArguments& arguments) {
  KldOptions options = arguments.options;
  options.session = arguments.session.options();
  const std::vector<PolicyColumn> columns = parse_policy_columns(arguments.columns.policies, arguments.columns.policy);
  const Model model = arguments.model.load();
  const TextChunks chunks = chunks_of(arguments, *model.impl()->vocabulary);
  KldResult result;
  run_interruptible("stopped: interrupted; nothing was written", [&](const std::atomic<bool>* cancel) {
    options.cancel = cancel;
    ProgressBar bar("tokens");
    result = run_kld(model, chunks, columns, options, bar.progress());
  });
  const TextRunFacts facts{model.info().name,
                           sha256_of_file(arguments.model.path),
                           file_name(arguments.file.empty() ? options.base_file : arguments.file),
                           chunks.context,
                           options.session.kv_type,
                           file_name(options.base_file)};
  fmt::print("{}", kld_markdown(facts, result));
  std::fflush(stdout);
  write_json_file(arguments.json_file, kld_json(facts, result));
  print_note(fmt::format("prefill {:.1f} s", result.prefill_seconds));
}

}  // namespace

void add_eval_kld_command(CLI::App& eval) {
  CLI::App* command = eval.add_subcommand(
      "kld", "Reads half of each chunk, compresses, scores the other half beside the uncompressed cache");
  const auto arguments = std::make_shared<KldArguments>();
  arguments->model.add(*command);
  command->add_option("-f,--file", arguments->file, "Text file, or JSON with the text in \"text\"")->type_name("FILE");
  command->add_option("--from", arguments->from, "Character of the text at which the first chunk begins")
      ->capture_default_str();
  arguments->session.context = 8192;
  arguments->session.add(*command);
  command->get_option("--ctx-size")->description("Tokens of a chunk (with --base alone: the file's)");
  command->add_option("--chunks", arguments->chunks, "Chunks, from the start; 0 = all")->capture_default_str();
  arguments->columns.policies = "full,razor:paper,razor:safe,razor:wide,razor-nocomp:wide,streaming-llm";
  arguments->columns.add(*command);
  command->add_option("--score-batch", arguments->options.score_batch, "Tokens scored at once")->capture_default_str();
  command
      ->add_option("--base", arguments->options.base_file, "Compare with these log-probabilities (llama.cpp's format)")
      ->type_name("FILE");
  command->add_option("--save-base", arguments->options.save_base, "Write those of the uncompressed cache")
      ->type_name("FILE");
  command->add_option("--json", arguments->json_file, "Write everything to this file")->type_name("FILE");
  command->callback([arguments] { run_kld_command(*arguments); });
}

}  // namespace razorkv::cli
