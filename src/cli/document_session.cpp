#include "cli/document_session.h"

namespace razorkv::cli {

DocumentSession::DocumentSession(const Model& model, const SessionOptions& options, const Policy& policy)
    : session_(model, options, policy) {}

void DocumentSession::keep() {
  after_ = process_memory();
  document_ = session_.statistics();
  start_ = session_.snapshot();
}

void DocumentSession::read(const std::vector<Token>& document) {
  feed_prompt(session_, document);
  before_ = process_memory();
  session_.compress();
  keep();
}

void DocumentSession::load(const std::string& path, bool any_policy) {
  before_ = process_memory();
  if (any_policy) {
    session_.load_with_policy(path);
  } else {
    session_.load(path);
  }
  keep();
}

Answer DocumentSession::answer(const std::string& question, const std::vector<Token>& tokens,
                               const SamplingParams& params, const GenerateOptions& options,
                               const std::function<void(std::string_view)>& show) {
  const SessionStatistics before = session_.statistics();
  Answer out;
  out.question = question;
  try {
    session_.feed(tokens);
    TokenSampler sampler(session_.model(), params);
    sampler.accept_prompt(tokens);
    out.generated = generate(session_, sampler, options, show);
    out.statistics = session_.statistics();
  } catch (...) {
    session_.restore(*start_);
    throw;
  }
  out.statistics.prefill_tokens -= before.prefill_tokens;
  out.statistics.prefill_seconds -= before.prefill_seconds;
  out.statistics.decode_tokens -= before.decode_tokens;
  out.statistics.decode_seconds -= before.decode_seconds;
  session_.restore(*start_);
  return out;
}

}  // namespace razorkv::cli
