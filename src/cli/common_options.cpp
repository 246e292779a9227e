#include "cli/common_options.h"

#include <algorithm>
#include <limits>

#include "base/text_file.h"
#include "cli/progress_bar.h"
#include "razorkv/error.h"

namespace razorkv::cli {
namespace {

KvType kv_type(const std::string& name, const char* option) {
  if (name.empty() || name == "f16") return KvType::f16;
  if (name == "f32") return KvType::f32;
  throw InvalidArgument(std::string(option) + ": expected f16 or f32, found '" + name + "'");
}

}  // namespace

void ModelArguments::add_path(CLI::App& command) {
  command.add_option("-m,--model", path, "GGUF file")->required()->type_name("FILE");
}

void ModelArguments::add(CLI::App& command) {
  add_path(command);
  command.add_flag("--no-mmap", no_mmap, "Read the weights into memory instead of mapping the file");
  command.add_flag("--no-repack", no_repack, "Do not rearrange weights for faster matrix products");
}

Model ModelArguments::load() const {
  LoadOptions options;
  options.use_mmap = !no_mmap;
  options.repack = !no_repack;
  return Model::load(path, options);
}

void SessionArguments::add(CLI::App& command) {
  command.add_option("-c,--ctx-size", context, "Context, tokens; 0 = the model's own length")->capture_default_str();
  command.add_option("-t,--threads", threads, "Threads for single tokens; 0 = all processors that may be used")
      ->capture_default_str();
  command.add_option("--threads-batch", threads_batch, "-tb: threads for prompts; 0 = as -t")->capture_default_str();
  command.add_option("-b,--batch-size", batch, "Tokens fed at once, at most; a micro-batch is never larger")
      ->capture_default_str();
  command.add_option("--ubatch-size", micro_batch, "-ub: tokens of a micro-batch")->capture_default_str();
  command.add_option("--cache-type-k", key_type, "-ctk: element type of cached keys, f16 or f32 (default f16)");
  command.add_option("--cache-type-v", value_type, "-ctv: element type of cached values, the same as of keys");
}

SessionOptions SessionArguments::options() const {
  SessionOptions out;
  const auto at_least = [](const char* name, std::int64_t value, std::int64_t least) {
    if (value < least) {
      throw InvalidArgument(std::string(name) + ": expected " + std::to_string(least) + " or more, found " +
                            std::to_string(value));
    }
  };
  at_least("-c", context, 0);
  at_least("-t", threads, 0);
  at_least("-tb", threads_batch, 0);
  at_least("-b", batch, 1);
  at_least("-ub", micro_batch, 1);
  out.context = context;
  out.threads = threads;
  out.threads_batch = threads_batch;
  out.micro_batch = std::min(batch, micro_batch);
  const KvType keys = kv_type(key_type.empty() ? value_type : key_type, "-ctk");
  const KvType values = kv_type(value_type.empty() ? key_type : value_type, "-ctv");
  if (keys != values) {
    throw InvalidArgument("-ctk " + key_type + " and -ctv " + value_type + ": expected one type for both");
  }
  out.kv_type = keys;
  return out;
}

void PolicyArguments::add(CLI::App& command) {
  const auto option = [&](const char* name, auto& value, const char* help) {
    CLI::Option* const added = command.add_option(name, value, help);
    added_.push_back(added);
    return added;
  };
  option("--policy", options.policy, "full, razor, razor-nocomp, streaming-llm, random or duo")->capture_default_str();
  option("--heads", options.heads,
         "KV heads kept whole: paper, safe, wide, shares such as 0.3+0.02, a list LAYER:HEAD,..., all, none, "
         "random:SEED, lists (of the JSON file --profile)")
      ->capture_default_str();
  option("--keep,--sinks", options.sinks, "First tokens that every head keeps")->capture_default_str();
  option("--window", options.window, "Last tokens that a head keeps, at least")->capture_default_str();
  option("--window-div", options.window_divisor, "The window is at least context / this; 0 = fixed")
      ->capture_default_str();
  option("--prefill", prefill, "What the prompt sees: exact (everything) or streaming (the kept rows)")
      ->check(CLI::IsMember({"exact", "streaming"}))
      ->capture_default_str();
  option("--kv-budget-mb", kv_budget_mb, "Bytes of the compressed cache, MiB; chooses window and heads")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 30U));
  option("--profile", options.profile, "Head profile or pattern to import (default: looked up or made)")
      ->type_name("FILE");
}

bool PolicyArguments::given() const {
  return std::ranges::any_of(added_, [](const CLI::Option* option) { return option->count() > 0; });
}

Policy PolicyArguments::make(const Model& model, const SessionOptions& session, std::int64_t tokens) const {
  PolicyOptions wanted = options;
  wanted.kv_type = session.kv_type;
  wanted.prefill = prefill == "streaming" ? PrefillMode::streaming : PrefillMode::exact;
  // One dropped row is stood for exactly by its compensation row.
  const bool exact = wanted.sinks >= 0 && wanted.window >= 1 && tokens - wanted.window - 1 <= wanted.sinks;
  if (wanted.policy == "razor" && kv_budget_mb == 0 && exact) return Policy::full(model);
  wanted.budget_bytes = kv_budget_mb << 20U;
  wanted.budget_tokens = tokens;
  ProgressBar bar("head profile");
  return Policy::make(model, wanted, bar.progress());
}

void SamplingArguments::add(CLI::App& command) {
  command.add_option("-n,--n-predict", count, "Tokens to generate; -1 = until the model or the context ends it")
      ->capture_default_str();
  command.add_option("-s,--seed", seed, "Seed of the draw; -1 = a new one each time")->capture_default_str();
  command.add_option("--temp", params.temperature, "Temperature; 0 = always the most likely token")
      ->capture_default_str();
  command.add_option("--top-k", params.top_k, "Draw from the k most likely tokens; 0 = all")->capture_default_str();
  command.add_option("--top-p", params.top_p, "Draw from the most likely tokens of this share; 1 = all")
      ->capture_default_str();
  command.add_option("--min-p", params.min_p, "Least probability, as a share of the largest; 0 = none")
      ->capture_default_str();
  command.add_option("--repeat-penalty", params.repeat_penalty, "Penalty of repeated tokens; 1 = none")
      ->capture_default_str();
  command.add_option("--repeat-last-n", params.penalty_last_n, "Tokens that penalties look back on; -1 = all")
      ->capture_default_str();
  command.add_option("--presence-penalty", params.presence_penalty, "0 = none")->capture_default_str();
  command.add_option("--frequency-penalty", params.frequency_penalty, "0 = none")->capture_default_str();
  command.add_option("--grammar", params.grammar, "GBNF grammar of the output");
  command.add_option("--grammar-file", grammar_file, "File with the grammar")->type_name("FILE");
  command.add_option("-r,--stop", stops, "End generation at this text, which is not shown (may be repeated)")
      ->allow_extra_args(false);
}

SamplingParams SamplingArguments::resolved() const {
  if (count < -1) throw InvalidArgument("-n: expected -1 or more, found " + std::to_string(count));
  SamplingParams out = params;
  if (seed < -1 || seed > std::numeric_limits<std::uint32_t>::max()) {
    throw InvalidArgument("--seed: expected -1 or a number from 0 to 4294967295, found " + std::to_string(seed));
  }
  if (seed >= 0) out.seed = static_cast<std::uint32_t>(seed);
  if (!grammar_file.empty()) {
    if (!params.grammar.empty()) throw InvalidArgument("give --grammar or --grammar-file, not both");
    out.grammar = read_text_file(grammar_file);
  }
  return out;
}

}  // namespace razorkv::cli
