#include "razorkv/session.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/stopwatch.h"
#include "engine/engine.h"
#include "engine/engine_settings.h"
#include "engine/model_handle.h"
#include "engine/policy_handle.h"
#include "engine/prefill.h"
#include "engine/state_file.h"
#include "razorkv/error.h"

namespace razorkv {
namespace {

SessionOptions filled(const Model& model, SessionOptions options) {
  const std::int64_t trained = model.impl()->loaded->config().context;
  if (options.context < 0) {
    throw InvalidArgument("the context must be 1 token or more, or 0 for the model's own " + std::to_string(trained) +
                          "; found " + std::to_string(options.context));
  }
  if (options.context == 0) options.context = trained;
  const EngineSettings settings = engine_settings(options);
  options.threads = settings.threads;
  options.threads_batch = settings.threads_batch;
  if (options.micro_batch < 1) {
    throw InvalidArgument("the micro-batch must be 1 token or more, found " + std::to_string(options.micro_batch));
  }
  return options;
}

}  // namespace

struct Snapshot::Impl {
  std::shared_ptr<Engine> engine;  // of its session; the pages must not outlive it
  KvSequence sequence;
  std::vector<Token> tokens;
  std::vector<float> logits;
  Policy policy;
};

std::int64_t Snapshot::tokens() const { return impl_->sequence.tokens(); }

struct Session::Impl {
  Impl(Model session_model, const SessionOptions& session_options, const Policy& session_policy)
      : model(std::move(session_model)),
        options(filled(model, session_options)),
        policy(session_policy),
        engine(std::make_shared<Engine>(model.impl()->loaded, engine_settings(options))),
        sequence(engine->new_sequence(policy.impl()->rules)) {
    engine->set_cancel_flag(&cancel);
  }

  /// Throws ContextFull for more tokens than the context holds; nothing changes then.
  void take(LoadedState loaded) {
    const auto n = static_cast<std::int64_t>(loaded.state.tokens.size());
    if (n > options.context) {
      throw ContextFull("the saved state holds " + std::to_string(n) + " tokens, the context " +
                        std::to_string(options.context) + "; use a longer context (-c)");
    }
    sequence = std::move(loaded.sequence);
    tokens = std::move(loaded.state.tokens);
    logits = std::move(loaded.state.logits);
  }

  Model model;
  SessionOptions options;
  Policy policy;
  std::shared_ptr<Engine> engine;
  KvSequence sequence;
  std::vector<Token> tokens;
  std::vector<float> logits;
  std::atomic<bool> cancel{false};
  SessionStatistics times;
};

Session::Session(const Model& model, const SessionOptions& options) : Session(model, options, Policy::full(model)) {}
Session::Session(Model model, const SessionOptions& options, const Policy& policy)
    : impl_(std::make_unique<Impl>(std::move(model), options, policy)) {}
Session::~Session() = default;
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;

const Model& Session::model() const { return impl_->model; }
const SessionOptions& Session::options() const { return impl_->options; }
const Policy& Session::policy() const { return impl_->policy; }
std::span<const float> Session::logits() const { return impl_->logits; }
bool Session::compressed() const { return impl_->sequence.compressed(); }
std::atomic<bool>& Session::cancel_flag() { return impl_->cancel; }

void Session::feed(std::span<const Token> tokens, const Progress& progress) {
  Impl& self = *impl_;
  const auto n = static_cast<std::int64_t>(tokens.size());
  if (self.sequence.tokens() + n > self.options.context) {
    throw ContextFull("the context holds " + std::to_string(self.options.context) + " tokens; " +
                      std::to_string(self.sequence.tokens()) + " are in use and " + std::to_string(n) +
                      " more were to come. Use a longer context (-c) or a shorter text");
  }
  const Stopwatch watch;
  const std::size_t before = self.tokens.size();
  self.logits.reserve(static_cast<std::size_t>(self.engine->model().config().vocabulary));
  self.tokens.insert(self.tokens.end(), tokens.begin(), tokens.end());
  try {
    const std::span<const float> logits =
        prefill(*self.engine, self.sequence, tokens, self.options.micro_batch, progress);
    self.logits.assign(logits.begin(), logits.end());
  } catch (...) {
    self.tokens.resize(before);
    throw;
  }
  if (n == 1) {
    self.times.decode_tokens += 1;
    self.times.decode_seconds += watch.seconds();
  } else {
    self.times.prefill_tokens += n;
    self.times.prefill_seconds += watch.seconds();
  }
}

void Session::set_policy(const Policy& policy) {
  impl_->sequence = impl_->sequence.with_policy(policy.impl()->rules);
  impl_->policy = policy;
}

void Session::compress() {
  const Stopwatch watch;
  impl_->sequence.compress();
  impl_->engine->pool().trim();
  impl_->times.compress_seconds += watch.seconds();
}

Snapshot Session::snapshot() const {
  return Snapshot(std::make_shared<const Snapshot::Impl>(
      Snapshot::Impl{impl_->engine, impl_->sequence, impl_->tokens, impl_->logits, impl_->policy}));
}

void Session::restore(const Snapshot& snapshot) {
  const Snapshot::Impl& saved = *snapshot.impl();
  if (saved.engine != impl_->engine) throw InvalidArgument("the snapshot was made by another session");
  KvSequence sequence = saved.sequence;
  std::vector<Token> tokens = saved.tokens;
  std::vector<float> logits = saved.logits;
  impl_->sequence = std::move(sequence);
  impl_->tokens = std::move(tokens);
  impl_->logits = std::move(logits);
  impl_->policy = saved.policy;
}

void Session::clear() {
  impl_->sequence = impl_->engine->new_sequence(impl_->policy.impl()->rules);
  impl_->tokens.clear();
  impl_->logits.clear();
}

void Session::save(const std::string& path) const {
  write_state(path, *impl_->engine, impl_->sequence, {impl_->tokens, impl_->logits, impl_->policy.description()});
}

void Session::load(const std::string& path) {
  impl_->take(read_state(path, *impl_->engine, impl_->policy.impl()->rules, impl_->policy.description()));
}

void Session::load_with_policy(const std::string& path) {
  LoadedState loaded = read_state(path, *impl_->engine, nullptr);
  Policy::Impl policy;
  policy.rules = loaded.sequence.shared_policy();
  policy.description = loaded.state.policy_description;
  const std::vector<LayerConfig>& layers = impl_->engine->model().config().layers;
  for (std::size_t l = 0; l < layers.size(); ++l) {
    if (layers[l].sliding) continue;
    policy.protected_heads += std::ranges::count_if(policy.rules->rules[l], &HeadRule::everything);
  }
  impl_->take(std::move(loaded));
  impl_->policy = Policy(std::make_shared<const Policy::Impl>(std::move(policy)));
}

SessionStatistics Session::statistics() const {
  SessionStatistics statistics = impl_->times;
  const KvUsage usage = impl_->sequence.usage();
  const PoolStats pool = impl_->engine->pool_stats();
  statistics.tokens = usage.tokens;
  statistics.kv_bytes = usage.allocated_bytes;
  statistics.kv_row_bytes = usage.row_bytes;
  statistics.kv_peak_bytes = pool.peak_bytes;
  statistics.kv_uncompressed_bytes = usage.uncompressed_bytes;
  statistics.compute_bytes = impl_->engine->compute_bytes();
  return statistics;
}

}  // namespace razorkv
