#include "eval/needle_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/stopwatch.h"
#include "engine/engine_settings.h"
#include "engine/model_handle.h"
#include "engine/policy_handle.h"
#include "engine/prefill.h"
#include "eval/greedy.h"
#include "eval/shared_prefill.h"
#include "razorkv/error.h"

namespace razorkv {
namespace {

class Runner {
 public:
  Runner(const Model& model, const NeedleRunOptions& options)
      : model_(model), options_(options), engine_(model.impl()->loaded, engine_settings(options.session)) {
    engine_.set_cancel_flag(options.cancel);
  }

  Engine& engine() { return engine_; }

  NeedleAnswer answer(KvSequence& sequence, const Needle& needle) {
    NeedleAnswer out;
    std::span<const float> logits = prefill(engine_, sequence, needle.question, options_.session.micro_batch);
    while (static_cast<std::int64_t>(out.tokens.size()) < options_.new_tokens) {
      const Token token = most_likely_token(logits);
      if (model_.ends_generation(token)) break;
      out.tokens.push_back(token);
      if (static_cast<std::int64_t>(out.tokens.size()) == options_.new_tokens) break;
      logits = prefill(engine_, sequence, std::array<Token, 1>{token}, 1);
    }
    out.text = model_.detokenize(out.tokens);
    out.found = needle_found(needle, out.text);
    return out;
  }

 private:
  const Model& model_;
  const NeedleRunOptions& options_;
  Engine engine_;
};

}  // namespace

NeedleResult run_needles(const Model& model, const NeedleTask& task, const std::vector<PolicyColumn>& columns,
                         const NeedleRunOptions& options, const Progress& progress) {
  const auto length = static_cast<std::int64_t>(task.context.size());
  const HeadShape shape = HeadShape::of(model.impl()->loaded->config());
  std::int64_t longest = 0;
  for (const Needle& needle : task.needles) {
    longest = std::max(longest, static_cast<std::int64_t>(needle.question.size()));
  }
  const std::int64_t needed = length + longest + options.new_tokens;
  if (needed > model.info().context) {
    throw InvalidArgument(fmt::format("context, question and answer take {} tokens, the model was trained for {}",
                                      needed, model.info().context));
  }
  const std::vector<Policy> policies = make_policies(model, columns, length, progress);

  const auto questions = static_cast<std::int64_t>(task.needles.size());
  const std::int64_t question_work = longest + options.new_tokens * 4;  // tokens of prefill that take about as long
  const std::int64_t total = length + static_cast<std::int64_t>(columns.size()) * questions * question_work;
  std::int64_t done = 0;
  const auto advance = [&](std::int64_t work) {
    done += work;
    if (progress && !progress(done, total)) throw Cancelled("stopped; no result was written");
  };

  NeedleResult result;
  Runner runner(model, options);
  SharedPrefill shared(runner.engine(), policies);
  const Stopwatch reading;
  shared.feed(task.context, options.session.micro_batch,
              [&](std::int64_t fed, std::int64_t) { return !progress || progress(fed, total); });
  done = length;
  result.prefill_seconds = reading.seconds();
  result.uncompressed_bytes = shared.whole().usage().allocated_bytes;

  for (std::size_t c = 0; c < columns.size(); ++c) {
    NeedleColumn column;
    static_cast<PolicyFacts&>(column) = policy_facts(columns[c], policies[c], shape, length);
    const Stopwatch compressing;
    const KvSequence compressed = shared.compressed(policies[c]);
    column.compress_seconds = compressing.seconds();
    column.kv_bytes = compressed.usage().allocated_bytes;
    column.kv_row_bytes = compressed.usage().row_bytes;
    const Stopwatch answering;
    for (const Needle& needle : task.needles) {
      KvSequence sequence = compressed;
      column.answers.push_back(runner.answer(sequence, needle));
      if (column.answers.back().found) ++column.found;
      column.kv_end_bytes = std::max(column.kv_end_bytes, sequence.usage().allocated_bytes);
      advance(question_work);
    }
    column.answer_seconds = answering.seconds();
    result.columns.push_back(std::move(column));
  }
  return result;
}

}  // namespace razorkv
