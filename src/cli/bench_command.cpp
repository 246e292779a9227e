// razorkv bench: speed, in the rows of llama-bench.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "base/atomic_file.h"
#include "base/processors.h"
#include "bench/bench_plot.h"
#include "bench/bench_report.h"
#include "bench/bench_run.h"
#include "bench/matmul_table.h"
#include "bench/memory_bandwidth.h"
#include "cli/commands.h"
#include "cli/common_options.h"
#include "cli/progress_bar.h"
#include "cli/report.h"
#include "razorkv/error.h"

namespace razorkv::cli {
namespace {

struct BenchArguments {
  ModelArguments model;
  SessionArguments session;
  PolicyArguments policy;
  bench::BenchSettings settings;
  std::string output = "md";
  std::string peer;
  std::string plot;
  bool memory = false;
  bool matmul = false;
};

std::int64_t most(const std::vector<std::int64_t>& values) {
  return values.empty() ? 0 : *std::max_element(values.begin(), values.end());
}

// Before minutes of measuring.
void check_plot(const bench::BenchSettings& settings) {
  const std::vector<std::int64_t>& depths = settings.depths;
  if (most(settings.answers) > 0 && !depths.empty() && *std::min_element(depths.begin(), depths.end()) < most(depths)) {
    return;
  }
  throw InvalidArgument("--plot: expected decode tests (-n) at two depths (-d) or more");
}

void print_bandwidth(int threads) {
  fmt::print("memory read by {} threads: {:.1f} GB/s\n", threads, bench::memory_bandwidth(threads) / 1e9);
}

void print_result(const std::string& output, const bench::BenchFacts& facts, const bench::BenchResult& result) {
  if (output == "json") return print_json(bench::bench_json(facts, result));
  fmt::print("{}", output == "csv" ? bench::bench_csv(facts, result) : bench::bench_markdown(facts, result));
}

void run_bench_command(const BenchArguments& arguments) {
  bench::BenchSettings settings = arguments.settings;
  settings.session = arguments.session.options();
  const int threads = settings.session.threads > 0 ? settings.session.threads : usable_processors();
  if (arguments.memory) return print_bandwidth(threads);
  if (arguments.model.path.empty()) throw InvalidArgument("-m: expected a GGUF file (or --memory alone)");
  if (arguments.matmul) {
    const std::int64_t tokens = settings.prompts.empty() ? 512 : settings.prompts.front();
    fmt::print("{}", bench::matmul_table(arguments.model.path, tokens, settings.repetitions));
    return;
  }
  if (!arguments.plot.empty()) check_plot(settings);
  if (!arguments.peer.empty()) settings.llama = arguments.model.path;
  const Model model = arguments.model.load();
  const Policy policy = arguments.policy.make(
      model, settings.session, most(settings.depths) + std::max(most(settings.prompts), most(settings.answers)));
  bench::BenchResult result;
  try {
    ProgressBar bar("tests");
    result = bench::run_bench(model, policy, settings, bar.progress());
  } catch (const Cancelled&) {
    print_note("stopped: interrupted; nothing was written");
    throw ExitWith{kExitInterrupted};
  }
  const bench::BenchFacts facts{model.info().name,    policy.description(),     threads,
                                settings.repetitions, settings.session.kv_type, bench::memory_bandwidth(threads)};
  print_result(arguments.output, facts, result);
  if (!arguments.plot.empty()) write_file_atomically(arguments.plot, bench::decode_plot_svg(facts, result));
}

}  // namespace

void add_bench_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("bench", "Speed of prefill and decode, in the rows of llama-bench");
  const auto arguments = std::make_shared<BenchArguments>();
  arguments->model.add(*command);
  command->get_option("--model")->required(false);
  bench::BenchSettings& settings = arguments->settings;
  command
      ->add_option("-p,--n-prompt,--prompt", settings.prompts, "Tokens of the prefill tests; commas between; 0 = none")
      ->delimiter(',')
      ->capture_default_str();
  command->add_option("-n,--n-gen", settings.answers, "Tokens of the decode tests; 0 = none")
      ->delimiter(',')
      ->capture_default_str();
  command->add_option("-d,--n-depth", settings.depths, "Tokens that are in the cache before each test")
      ->delimiter(',')
      ->capture_default_str();
  command->add_option("-r,--repetitions", settings.repetitions, "Repetitions of each test")->capture_default_str();
  command->add_option("-o,--output", arguments->output, "md, csv or json")
      ->check(CLI::IsMember({"md", "csv", "json"}))
      ->capture_default_str();
  command->add_option("--vs", arguments->peer, "Runs llama.cpp beside, flash attention off and on")
      ->check(CLI::IsMember({"llama.cpp"}));
  command->add_option("--plot", arguments->plot, "SVG of decoded tokens/s against depth")->type_name("FILE");
  command->add_flag("--memory", arguments->memory, "Only measure how fast memory is read");
  command->add_flag("--matmul", arguments->matmul,
                    "Only measure the products with the model's weights, beside ggml's, in one thread");
  arguments->session.add(*command);
  command->remove_option(command->get_option("--ctx-size"));
  arguments->policy.options.policy = "full";
  arguments->policy.add(*command);
  command->callback([arguments] { run_bench_command(*arguments); });
}

}  // namespace razorkv::cli
