#include "engine/compiled_graph.h"

#include <ggml-alloc.h>
#include <ggml-backend.h>
#include <ggml.h>

#include "model/loaded_model.h"
#include "razorkv/error.h"

namespace razorkv {
namespace {

// Attention adds at most this many nodes to a layer (store, attend, observe).
constexpr std::int64_t kHookNodesPerLayer = 4;

struct ContextFree {
  void operator()(ggml_context* context) const { ggml_free(context); }
};
struct AllocatorFree {
  void operator()(ggml_gallocr* allocator) const { ggml_gallocr_free(allocator); }
};

}  // namespace

struct CompiledGraph::Memory {
  std::unique_ptr<ggml_context, ContextFree> context;
  std::unique_ptr<ggml_gallocr, AllocatorFree> allocator;
};

CompiledGraph::CompiledGraph(const LoadedModel& model, const GraphShape& shape, AttentionHook& hook)
    : shape_(shape), memory_(std::make_unique<Memory>()) {
  const auto nodes =
      static_cast<std::size_t>(decoder_graph_nodes(model) + kHookNodesPerLayer * model.config().layer_count());
  const ggml_init_params params{ggml_tensor_overhead() * 2 * nodes + ggml_graph_overhead_custom(nodes, false), nullptr,
                                true};
  memory_->context.reset(ggml_init(params));
  if (!memory_->context) throw OutOfMemory("no memory for the graph's description");
  graph_ = ggml_new_graph_custom(memory_->context.get(), nodes, false);
  tensors_ = build_decoder(memory_->context.get(), graph_, model, shape.tokens, shape.outputs, hook);
  memory_->allocator.reset(ggml_gallocr_new(ggml_backend_cpu_buffer_type()));
  if (!memory_->allocator || !ggml_gallocr_alloc_graph(memory_->allocator.get(), graph_)) {
    throw OutOfMemory("no memory for the activations of a batch of " + std::to_string(shape.tokens) +
                      " tokens; try a smaller micro-batch (-ub)");
  }
}

CompiledGraph::~CompiledGraph() = default;

std::size_t CompiledGraph::bytes() const noexcept { return ggml_gallocr_get_buffer_size(memory_->allocator.get(), 0); }

}  // namespace razorkv
