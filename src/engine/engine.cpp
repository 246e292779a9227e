#include "engine/engine.h"

#include <ggml-backend.h>
#include <ggml-cpu.h>
#include <ggml.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "engine/attention_ops.h"
#include "engine/batch_run.h"
#include "engine/compiled_graph.h"
#include "razorkv/error.h"

namespace razorkv {
namespace {

// Decode, prefill and the last, shorter micro-batch of a prompt: three shapes in turn without rebuilding.
constexpr std::size_t kCachedGraphs = 3;
// Batches up to this many tokens count as decode and use `threads`.
constexpr std::int64_t kDecodeTokens = 8;

struct BackendFree {
  void operator()(ggml_backend* backend) const { ggml_backend_free(backend); }
};
struct ThreadpoolFree {
  void operator()(ggml_threadpool* pool) const { ggml_threadpool_free(pool); }
};

struct ReadyGraph {
  ReadyGraph(const LoadedModel& model, const GraphShape& shape, BatchRun& run)
      : ops(run, shape.observed), graph(model, shape, ops) {}
  AttentionOps ops;
  CompiledGraph graph;
};

}  // namespace

struct Engine::Impl {
  Impl(std::shared_ptr<const LoadedModel> loaded, const EngineSettings& engine_settings)
      : model(std::move(loaded)),
        settings(engine_settings),
        format{settings.row_type, model->config().head_width},
        pool(format.page_bytes(), settings.kv_budget_bytes),
        run(model->config()) {
    const int threads = std::max(settings.threads, settings.threads_batch);
    if (settings.threads < 1 || settings.threads_batch < 1 || threads > GGML_MAX_N_THREADS) {
      throw InvalidArgument("threads must be from 1 to " + std::to_string(GGML_MAX_N_THREADS) + ", found " +
                            std::to_string(settings.threads) + " and " + std::to_string(settings.threads_batch));
    }
    ggml_threadpool_params params = ggml_threadpool_params_default(threads);
    threadpool.reset(ggml_threadpool_new(&params));
    backend.reset(ggml_backend_cpu_init());
    if (!threadpool || !backend) throw OutOfMemory("no memory for the compute threads");
    ggml_backend_cpu_set_threadpool(backend.get(), threadpool.get());
    ggml_backend_cpu_set_abort_callback(backend.get(), &Impl::cancelled, this);
    for (const LayerConfig& layer : model->config().layers) {
      sliding_window.push_back(layer.sliding ? model->config().sliding_window : 0);
    }
  }

  static bool cancelled(void* self) {
    const auto* flag = static_cast<Impl*>(self)->cancel_flag;
    return flag != nullptr && flag->load(std::memory_order_relaxed);
  }

  CompiledGraph& graph_for(const GraphShape& shape) {
    const auto found =
        std::find_if(graphs.begin(), graphs.end(), [&](const auto& ready) { return ready->graph.shape() == shape; });
    if (found != graphs.end()) {
      std::rotate(graphs.begin(), found, found + 1);
      return graphs.front()->graph;
    }
    if (graphs.size() == kCachedGraphs) graphs.pop_back();
    graphs.insert(graphs.begin(), std::make_unique<ReadyGraph>(*model, shape, run));
    return graphs.front()->graph;
  }

  std::shared_ptr<const LoadedModel> model;
  EngineSettings settings;
  RowFormat format;
  PagePool pool;
  BatchRun run;
  std::unique_ptr<ggml_threadpool, ThreadpoolFree> threadpool;
  std::unique_ptr<ggml_backend, BackendFree> backend;
  std::vector<std::unique_ptr<ReadyGraph>> graphs;  // last used first
  std::vector<std::int64_t> sliding_window;
  std::vector<float> logits;
  const std::atomic<bool>* cancel_flag = nullptr;
  AttentionObserver* observer = nullptr;
};

Engine::Engine(std::shared_ptr<const LoadedModel> model, const EngineSettings& settings)
    : impl_(std::make_unique<Impl>(std::move(model), settings)) {}
Engine::~Engine() = default;

const LoadedModel& Engine::model() const noexcept { return *impl_->model; }
const EngineSettings& Engine::settings() const noexcept { return impl_->settings; }
void Engine::set_cancel_flag(const std::atomic<bool>* flag) noexcept { impl_->cancel_flag = flag; }
void Engine::set_observer(AttentionObserver* observer) noexcept { impl_->observer = observer; }
PoolStats Engine::pool_stats() const noexcept { return impl_->pool.stats(); }
PagePool& Engine::pool() noexcept { return impl_->pool; }

std::size_t Engine::compute_bytes() const noexcept {
  std::size_t bytes = impl_->logits.capacity() * sizeof(float);
  for (const auto& ready : impl_->graphs) bytes += ready->graph.bytes();
  return bytes;
}

KvSequence Engine::new_sequence(std::shared_ptr<const KvPolicy> policy) const {
  const auto& layers = impl_->model->config().layers;
  for (std::size_t l = 0; l < std::min(layers.size(), policy->rules.size()); ++l) {
    if (static_cast<std::int64_t>(policy->rules[l].size()) != layers[l].kv_heads) {
      throw InvalidArgument("the KV policy has " + std::to_string(policy->rules[l].size()) + " KV heads in layer " +
                            std::to_string(l) + ", the model has " + std::to_string(layers[l].kv_heads));
    }
  }
  return KvSequence(impl_->format, std::move(policy), impl_->sliding_window);
}

std::shared_ptr<const KvPolicy> Engine::full_policy() const {
  auto policy = std::make_shared<KvPolicy>();
  for (const LayerConfig& layer : impl_->model->config().layers) {
    policy->rules.emplace_back(static_cast<std::size_t>(layer.kv_heads), HeadRule::all());
  }
  return policy;
}

std::span<const float> Engine::decode(std::span<const BatchItem> items) {
  Impl& self = *impl_;
  const Config& config = self.model->config();
  std::vector<BatchPart> parts;
  std::vector<Token> tokens;
  std::vector<std::int32_t> positions;
  std::vector<std::int32_t> output_rows;
  for (const BatchItem& item : items) {
    const auto n = static_cast<std::int64_t>(item.tokens.size());
    if (item.sequence == nullptr || n == 0)
      throw InvalidArgument("a batch item needs a sequence and at least one token");
    if (item.outputs < 0 || item.outputs > n) {
      throw InvalidArgument("outputs must be from 0 to the item's " + std::to_string(n) + " tokens, found " +
                            std::to_string(item.outputs));
    }
    for (const BatchPart& part : parts) {
      if (part.sequence == item.sequence) throw InvalidArgument("a sequence may be in a batch only once");
    }
    const std::int64_t begin = item.sequence->tokens();
    const auto offset = static_cast<std::int64_t>(tokens.size());
    parts.push_back({item.sequence, begin, n, offset});
    for (std::int64_t i = 0; i < n; ++i) {
      const Token token = item.tokens[static_cast<std::size_t>(i)];
      if (token < 0 || token >= config.vocabulary) {
        throw InvalidArgument("token id " + std::to_string(token) + " is outside the vocabulary of " +
                              std::to_string(config.vocabulary));
      }
      tokens.push_back(token);
      positions.push_back(static_cast<std::int32_t>(begin + i));
      if (i >= n - item.outputs) output_rows.push_back(static_cast<std::int32_t>(offset + i));
    }
  }
  if (parts.empty()) throw InvalidArgument("the batch is empty");

  const auto n = static_cast<std::int64_t>(tokens.size());
  const auto outputs = static_cast<std::int64_t>(output_rows.size());
  CompiledGraph& compiled = self.graph_for({n, outputs, self.observer != nullptr});
  self.logits.resize(static_cast<std::size_t>(outputs * config.vocabulary));
  const int threads = n <= kDecodeTokens ? self.settings.threads : self.settings.threads_batch;
  const auto release = [&parts] {
    for (const BatchPart& part : parts) part.sequence->release_reserved();
  };
  try {
    for (const BatchPart& part : parts) part.sequence->reserve(self.pool, part.n);
    self.run.start(parts, self.observer, threads);
    const DecoderGraph& graph = compiled.tensors();
    ggml_backend_tensor_set(graph.tokens, tokens.data(), 0, tokens.size() * sizeof(Token));
    set_positions(graph, *self.model, positions);
    if (graph.output_rows != nullptr && outputs > 0) {
      ggml_backend_tensor_set(graph.output_rows, output_rows.data(), 0, output_rows.size() * sizeof(std::int32_t));
    }
    ggml_backend_cpu_set_n_threads(self.backend.get(), threads);
    const ggml_status status = ggml_backend_graph_compute(self.backend.get(), compiled.graph());
    if (self.run.error()) std::rethrow_exception(self.run.error());
    if (status == GGML_STATUS_ABORTED) throw Cancelled("stopped while computing");
    if (status == GGML_STATUS_ALLOC_FAILED) throw OutOfMemory("no memory for the work buffer of a forward pass");
    if (status != GGML_STATUS_SUCCESS) {
      throw Error(std::string("ggml could not compute the forward pass: ") + ggml_status_to_string(status));
    }
    if (outputs > 0) ggml_backend_tensor_get(graph.logits, self.logits.data(), 0, self.logits.size() * sizeof(float));
  } catch (...) {
    release();
    throw;
  }
  for (const BatchPart& part : parts) part.sequence->commit(part.n);
  return self.logits;
}

}  // namespace razorkv
