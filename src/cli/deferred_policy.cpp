#include "cli/deferred_policy.h"

#include "heads/head_selection.h"

namespace razorkv::cli {
namespace {

bool can_wait(const PolicyArguments& arguments) {
  const PolicyOptions& options = arguments.options;
  return options.policy == "razor" && options.profile.empty() && arguments.kv_budget_mb == 0 &&
         arguments.prefill == "exact" && options.sinks >= 0 && options.window >= 1 && options.window_divisor >= 0 &&
         options.heads != "lists" && needs_scores(parse_head_choice(options.heads));
}

}  // namespace

DeferredPolicy::DeferredPolicy(const PolicyArguments& arguments, const Model& model, const SessionOptions& session,
                               std::int64_t tokens)
    : arguments_(arguments),
      model_(model),
      session_(session),
      tokens_(tokens),
      deferred_(can_wait(arguments)),
      initial_(deferred_ ? Policy::full(model) : arguments.make(model, session, tokens)) {}

bool DeferredPolicy::pending(const Session& session) const {
  return deferred_ && !session.compressed() && session.policy().name() == initial_.name();
}

void DeferredPolicy::before_feeding(Session& session, std::int64_t more) {
  if (!pending(session)) return;
  const std::int64_t whole = arguments_.options.sinks + arguments_.options.window + 1;
  if (session.statistics().tokens + more <= whole) return;
  if (!made_) made_ = arguments_.make(model_, session_, tokens_);
  session.set_policy(*made_);
}

void DeferredPolicy::end_prompt(Session& session) const {
  if (!session.compressed() && !pending(session)) session.compress();
}

}  // namespace razorkv::cli
