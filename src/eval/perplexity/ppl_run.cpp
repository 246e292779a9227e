#include "eval/perplexity/ppl_run.h"

#include "base/stopwatch.h"
#include "engine/engine_settings.h"
#include "engine/model_handle.h"
#include "eval/perplexity/log_softmax.h"
#include "eval/perplexity/teacher_forcing.h"
#include "razorkv/error.h"

namespace razorkv {

PplResult run_perplexity(const Model& model, const TextChunks& chunks, const PplOptions& options,
                         const Progress& progress) {
  check_fits(chunks, model.info().context);
  Engine engine(model.impl()->loaded, engine_settings(options.session));
  engine.set_cancel_flag(options.cancel);
  const Stopwatch watch;
  SampleSum nll;
  PplResult result;
  for (std::int64_t chunk = 0; chunk < chunks.count(); ++chunk) {
    KvSequence sequence = engine.new_sequence(engine.full_policy());
    const std::span<const Token> targets = chunks.targets(chunk);
    feed_and_see(engine, sequence, chunks.input(chunk), chunks.first(), options.session.micro_batch,
                 [&](std::int64_t index, std::span<const float> logits) {
                   nll.add(-log_softmax(logits)[targets[static_cast<std::size_t>(index - chunks.first())]]);
                 });
    ++result.chunks;
    if (progress && !progress(result.chunks, chunks.count())) throw Cancelled("stopped; no result was written");
  }
  result.scored = nll.count();
  result.nll = nll.mean();
  result.perplexity = exponential(result.nll);
  result.seconds = watch.seconds();
  return result;
}

}  // namespace razorkv
