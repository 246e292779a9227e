// razorkv eval ppl: perplexity of a text.
#include <fmt/format.h>

#include <cstdio>
#include <memory>

#include "base/sha256.h"
#include "cli/eval_commands.h"
#include "cli/progress_bar.h"
#include "engine/model_handle.h"
#include "eval/haystack.h"
#include "eval/perplexity/ppl_run.h"
#include "razorkv/version.h"

namespace razorkv::cli {
namespace {

struct PplArguments {
  ModelArguments model;
  SessionArguments session;
  std::string file;
  std::int64_t chunks = 0;
  std::string json_file;
};

void run_ppl(const PplArguments& arguments) {
  PplOptions options;
  options.session = arguments.session.options();
  const std::string text = read_haystack(arguments.file);
  const Model model = arguments.model.load();
  const TextChunks chunks = cut_text(*model.impl()->vocabulary, text, arguments.session.context, arguments.chunks);
  PplResult result;
  run_interruptible("stopped: interrupted; nothing was written", [&](const std::atomic<bool>* cancel) {
    options.cancel = cancel;
    ProgressBar bar("chunks");
    result = run_perplexity(model, chunks, options, bar.progress());
  });
  const double speed = static_cast<double>(result.chunks * (chunks.context - 1)) / result.seconds;
  fmt::print(
      "| model | text | context | chunks | tokens scored | PPL | tokens/s |\n|---|---|---|---|---|---|---|\n"
      "| {} | {} | {} | {} | {} | {:.4f} ± {:.5f} | {:.1f} |\n",
      model.info().name, file_name(arguments.file), chunks.context, result.chunks, result.scored,
      result.perplexity.value, result.perplexity.error, speed);
  std::fflush(stdout);
  if (arguments.json_file.empty()) return;
  write_json_file(arguments.json_file, {{"task", "ppl"},
                                        {"engine_version", version()},
                                        {"model", model.info().name},
                                        {"model_sha256", sha256_of_file(arguments.model.path)},
                                        {"text", file_name(arguments.file)},
                                        {"context", chunks.context},
                                        {"chunks", result.chunks},
                                        {"scored", result.scored},
                                        {"kv_type", options.session.kv_type == KvType::f32 ? "f32" : "f16"},
                                        {"nll", result.nll.value},
                                        {"nll_error", result.nll.error},
                                        {"perplexity", result.perplexity.value},
                                        {"perplexity_error", result.perplexity.error},
                                        {"tokens_per_second", speed}});
}

}  // namespace

void add_eval_ppl_command(CLI::App& eval) {
  CLI::App* command =
      eval.add_subcommand("ppl", "Perplexity of a text, as llama.cpp's perplexity; the cache keeps everything");
  const auto arguments = std::make_shared<PplArguments>();
  arguments->model.add(*command);
  command->add_option("-f,--file", arguments->file, "Text file, or JSON with the text in \"text\"")
      ->required()
      ->type_name("FILE");
  arguments->session.context = 512;
  arguments->session.add(*command);
  command->get_option("--ctx-size")->description("Tokens of a chunk");
  command->add_option("--chunks", arguments->chunks, "Chunks, from the start of the text; 0 = all")
      ->capture_default_str();
  command->add_option("--json", arguments->json_file, "Write the result to this file")->type_name("FILE");
  command->callback([arguments] { run_ppl(*arguments); });
}

}  // namespace razorkv::cli
