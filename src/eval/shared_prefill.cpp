#include "eval/shared_prefill.h"

#include <algorithm>
#include <exception>

#include "engine/policy_handle.h"
#include "engine/row_choice.h"
#include "razorkv/error.h"

namespace razorkv {
namespace {

/// Sets the engine's observer for as long as it lives.
class Observing {
 public:
  Observing(Engine& engine, AttentionObserver* observer) : engine_(engine) { engine_.set_observer(observer); }
  ~Observing() { engine_.set_observer(nullptr); }
  Observing(const Observing&) = delete;
  Observing& operator=(const Observing&) = delete;

 private:
  Engine& engine_;
};

}  // namespace

SharedPrefill::SharedPrefill(Engine& engine, std::span<const Policy> policies)
    : engine_(engine), whole_(engine.new_sequence(engine.full_policy())) {
  const auto selects = [](const Policy& policy) { return policy.impl()->rules->selects_rows(); };
  const auto accumulates = [](const Policy& policy) {
    return policy.impl()->rules->selection.by == RowSelection::By::h2o;
  };
  if (std::ranges::any_of(policies, selects)) {
    attention_.emplace(engine.model().config(), std::ranges::any_of(policies, accumulates));
  }
}

std::span<const float> SharedPrefill::feed(std::span<const Token> tokens, std::int64_t micro_batch,
                                           const PrefillProgress& progress) {
  if (!attention_) return prefill(engine_, whole_, tokens, micro_batch, progress);
  PromptAttentionObserver observer(*attention_);
  const Observing observing(engine_, &observer);
  const std::span<const float> logits = prefill(engine_, whole_, tokens, micro_batch, progress);
  if (observer.error()) std::rethrow_exception(observer.error());
  return logits;
}

KvSequence SharedPrefill::compressed(const Policy& policy) const {
  KvSequence sequence = whole_.with_policy(policy.impl()->rules);
  if (!policy.impl()->rules->selects_rows()) {
    sequence.compress();
    return sequence;
  }
  if (!attention_) throw InvalidArgument("policy " + policy.name() + " was not named before the prefill");
  sequence.compress(choose_rows(*attention_, sequence));
  return sequence;
}

}  // namespace razorkv
