// The decoder as a ggml graph. Attention and the cache are not part of it: a hook puts them in.
#pragma once

#include <cstdint>
#include <span>

struct ggml_cgraph;
struct ggml_context;
struct ggml_tensor;

namespace razorkv {

class LoadedModel;

/// What a layer hands to attention. All float32; ggml order (fastest dimension first).
struct LayerTensors {
  ggml_tensor* q = nullptr;  ///< [head_width, heads, n] after RoPE and norms
  ggml_tensor* k = nullptr;  ///< [head_width, kv_heads, n] after RoPE and norms
  ggml_tensor* v = nullptr;  ///< [head_width, kv_heads, n]
  ggml_tensor* q_before_rope = nullptr;
  ggml_tensor* k_before_rope = nullptr;
  ggml_tensor* residual = nullptr;  ///< [embedding, n], the stream that enters the layer, before its norm
};

class AttentionHook {
 public:
  virtual ~AttentionHook() = default;
  /// Adds attention of layer `layer` to the graph; returns its output [head_width * heads, n] float32, contiguous.
  virtual ggml_tensor* attend(ggml_context* context, ggml_cgraph* graph, std::int64_t layer,
                              const LayerTensors& tensors) = 0;
};

struct DecoderGraph {
  ggml_tensor* tokens = nullptr;          ///< input, [n] int32
  ggml_tensor* angles = nullptr;          ///< input, [rope.dims, n] float32, see Rotation::table
  ggml_tensor* angles_sliding = nullptr;  ///< the same of sliding-window layers; null where there are none
  ggml_tensor* output_rows = nullptr;  ///< input, [outputs] int32: rows whose logits are wanted; null when outputs == n
  ggml_tensor* logits = nullptr;       ///< output, [vocabulary, outputs] float32; null when outputs == 0
};

/// Builds the graph for a batch of `n` tokens of which `outputs` need logits. The last layer's FFN and the output
/// matrix run on the wanted rows only; the last layer's attention hook still sees all rows.
DecoderGraph build_decoder(ggml_context* context, ggml_cgraph* graph, const LoadedModel& model, std::int64_t n,
                           std::int64_t outputs, AttentionHook& hook);

/// Writes the angles of `positions` [n] into the inputs of an allocated graph.
void set_positions(const DecoderGraph& graph, const LoadedModel& model, std::span<const std::int32_t> positions);

/// Upper bound of the graph's nodes (hook nodes not counted), for ggml_new_graph_custom.
std::int64_t decoder_graph_nodes(const LoadedModel& model);

}  // namespace razorkv
