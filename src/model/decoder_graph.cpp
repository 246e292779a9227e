#include "model/decoder_graph.h"

#include <ggml.h>

#include <algorithm>

#include "model/loaded_model.h"
#include "model/matrix_product.h"

namespace razorkv {
namespace {

class DecoderBuilder {
 public:
  DecoderBuilder(ggml_context* context, ggml_cgraph* graph, const LoadedModel& model, AttentionHook& hook)
      : context_(context),
        graph_(graph),
        model_(model),
        config_(model.config()),
        hook_(hook),
        products_(context, model.fast_products()) {}

  DecoderGraph build(std::int64_t n, std::int64_t outputs) {
    DecoderGraph made;
    made.tokens = input(n, "tokens");
    made.angles = angles(n, "angles");
    const auto sliding = [](const LayerConfig& layer) { return layer.sliding; };
    if (std::ranges::any_of(config_.layers, sliding)) made.angles_sliding = angles(n, "angles_sliding");
    if (outputs != 0 && outputs != n) made.output_rows = input(outputs, "output_rows");
    ggml_tensor* stream = ggml_get_rows(context_, model_.token_embedding(), made.tokens);
    if (config_.embedding_scale != 1.0F) stream = ggml_scale(context_, stream, config_.embedding_scale);
    const std::int64_t last = config_.layer_count() - 1;
    for (std::int64_t i = 0; i < last; ++i) {
      stream = feed_forward(i, residual(i, stream, attention(i, stream, made)));
    }
    // Only the wanted rows go past the last layer's attention.
    ggml_tensor* attended = attention(last, stream, made);
    ggml_build_forward_expand(graph_, attended);
    if (outputs == 0) return made;
    if (made.output_rows != nullptr) {
      attended = ggml_get_rows(context_, attended, made.output_rows);
      stream = ggml_get_rows(context_, stream, made.output_rows);
    }
    made.logits = logits(feed_forward(last, residual(last, stream, attended)));
    ggml_set_output(made.logits);
    ggml_build_forward_expand(graph_, made.logits);
    return made;
  }

 private:
  ggml_tensor* input(std::int64_t size, const char* name) {
    ggml_tensor* tensor = ggml_new_tensor_1d(context_, GGML_TYPE_I32, size);
    ggml_set_input(tensor);
    ggml_set_name(tensor, name);
    return tensor;
  }

  ggml_tensor* angles(std::int64_t n, const char* name) {
    ggml_tensor* tensor = ggml_new_tensor_2d(context_, GGML_TYPE_F32, config_.rope.dims, n);
    ggml_set_input(tensor);
    ggml_set_name(tensor, name);
    return tensor;
  }

  ggml_tensor* norm(ggml_tensor* x, ggml_tensor* weight) {
    return ggml_mul(context_, ggml_rms_norm(context_, x, config_.norm_epsilon), weight);
  }

  ggml_tensor* optional_norm(ggml_tensor* x, ggml_tensor* weight) { return weight == nullptr ? x : norm(x, weight); }

  ggml_tensor* linear(ggml_tensor* weight, ggml_tensor* bias, ggml_tensor* x) {
    ggml_tensor* y = products_.multiply(weight, x);
    return bias == nullptr ? y : ggml_add(context_, y, bias);
  }

  /// [head_width * heads, n] -> [head_width, heads, n]
  ggml_tensor* split(ggml_tensor* x, std::int64_t heads) {
    return ggml_reshape_3d(context_, x, config_.head_width, heads, x->ne[1]);
  }

  /// Attention of a layer before its output matrix, [head_width * heads, n].
  ggml_tensor* attention(std::int64_t index, ggml_tensor* stream, const DecoderGraph& inputs) {
    const LayerWeights& w = model_.layer(index);
    const LayerConfig& layer = config_.layers[static_cast<std::size_t>(index)];
    ggml_tensor* x = norm(stream, w.attn_norm);
    ggml_tensor* const angles = layer.sliding ? inputs.angles_sliding : inputs.angles;
    LayerTensors tensors;
    tensors.residual = stream;
    tensors.q_before_rope = optional_norm(split(linear(w.attn_q, w.attn_q_bias, x), layer.heads), w.attn_q_norm);
    tensors.q = rotate(context_, config_.rope, tensors.q_before_rope, angles);
    tensors.k_before_rope = optional_norm(split(linear(w.attn_k, w.attn_k_bias, x), layer.kv_heads), w.attn_k_norm);
    tensors.k = rotate(context_, config_.rope, tensors.k_before_rope, angles);
    tensors.v = split(linear(w.attn_v, w.attn_v_bias, x), layer.kv_heads);
    return hook_.attend(context_, graph_, index, tensors);
  }

  ggml_tensor* residual(std::int64_t index, ggml_tensor* stream, ggml_tensor* attended) {
    const LayerWeights& w = model_.layer(index);
    ggml_tensor* out = linear(w.attn_output, w.attn_output_bias, attended);
    return ggml_add(context_, optional_norm(out, w.attn_post_norm), stream);
  }

  ggml_tensor* feed_forward(std::int64_t index, ggml_tensor* stream) {
    const LayerWeights& w = model_.layer(index);
    ggml_tensor* x = norm(stream, w.ffn_norm);
    ggml_tensor* up = linear(w.ffn_up, w.ffn_up_bias, x);
    ggml_tensor* gate = linear(w.ffn_gate, w.ffn_gate_bias, x);
    ggml_tensor* inner = config_.gelu ? ggml_geglu_split(context_, gate, up) : ggml_swiglu_split(context_, gate, up);
    ggml_tensor* down = linear(w.ffn_down, w.ffn_down_bias, inner);
    return ggml_add(context_, optional_norm(down, w.ffn_post_norm), stream);
  }

  ggml_tensor* logits(ggml_tensor* stream) {
    ggml_tensor* x = products_.multiply(model_.output(), norm(stream, model_.output_norm()));
    const float cap = config_.final_soft_cap;
    if (cap == 0.0F) return x;
    return ggml_scale(context_, ggml_tanh(context_, ggml_scale(context_, x, 1.0F / cap)), cap);
  }

  ggml_context* context_;
  ggml_cgraph* graph_;
  const LoadedModel& model_;
  const Config& config_;
  AttentionHook& hook_;
  MatrixProducts products_;
};

}  // namespace

DecoderGraph build_decoder(ggml_context* context, ggml_cgraph* graph, const LoadedModel& model, std::int64_t n,
                           std::int64_t outputs, AttentionHook& hook) {
  return DecoderBuilder(context, graph, model, hook).build(n, outputs);
}

void set_positions(const DecoderGraph& graph, const LoadedModel& model, std::span<const std::int32_t> positions) {
  for (const bool sliding : {false, true}) {
    const ggml_tensor* const angles = sliding ? graph.angles_sliding : graph.angles;
    if (angles == nullptr) continue;
    model.rotation(sliding).table(
        positions, {static_cast<float*>(angles->data), static_cast<std::size_t>(ggml_nelements(angles))});
  }
}

std::int64_t decoder_graph_nodes(const LoadedModel& model) {
  // Per layer at most 39 (three biased and two normed projections with reshapes and rotations, output, FFN, four
  // norms of two operations, two sums, four roundings to 8 bits, weights counted as leaves); around the layers at
  // most 17.
  constexpr std::int64_t per_layer = 64;
  constexpr std::int64_t around = 32;
  return per_layer * model.config().layer_count() + around;
}

}  // namespace razorkv
