#include "model/weight_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace razorkv {
namespace {

constexpr const char* kEmbedding = "token_embd.weight";

class TableBuilder {
 public:
  TableBuilder(const Config& config, const Architecture& architecture) : config_(config), architecture_(architecture) {}

  std::vector<WeightSpec> build(ModelWeights& weights) {
    weights.layers.resize(config_.layers.size());
    const std::int64_t width = config_.embedding;
    matrix(kEmbedding, width, config_.vocabulary, weights.token_embedding, Presence::required);
    specs_.back().use = WeightUse::rows;
    vector("output_norm.weight", width, weights.output_norm, Presence::required);
    output(weights.output);
    vector("rope_freqs.weight", config_.rope.dims / 2, weights.rope_factors, architecture_.rope_factors);
    for (std::size_t i = 0; i < weights.layers.size(); ++i) {
      const std::string block = fmt::format("blk.{}.", i);
      attention(block, config_.layers[i], weights.layers[i]);
      feed_forward(block, config_.layers[i].feed_forward, weights.layers[i]);
    }
    return std::move(specs_);
  }

 private:
  void add(std::string name, std::vector<std::int64_t> shape, WeightUse use, ggml_tensor*& slot, Presence presence) {
    if (presence == Presence::absent) return;
    specs_.push_back({std::move(name), std::move(shape), use, presence == Presence::required, &slot, ""});
  }
  void matrix(std::string name, std::int64_t in, std::int64_t out, ggml_tensor*& slot, Presence presence) {
    add(std::move(name), {in, out}, WeightUse::matmul, slot, presence);
  }
  void vector(std::string name, std::int64_t size, ggml_tensor*& slot, Presence presence) {
    add(std::move(name), {size}, WeightUse::vector, slot, presence);
  }

  void output(ggml_tensor*& slot) {
    const bool separate = architecture_.separate_output != Presence::absent;
    matrix(separate ? "output.weight" : kEmbedding, config_.embedding, config_.vocabulary, slot,
           separate ? architecture_.separate_output : Presence::required);
    specs_.back().stand_in = kEmbedding;
  }

  void attention(const std::string& block, const LayerConfig& layer, LayerWeights& to) {
    const std::int64_t width = config_.embedding;
    const std::int64_t q = config_.head_width * layer.heads;
    const std::int64_t kv = config_.head_width * layer.kv_heads;
    vector(block + "attn_norm.weight", width, to.attn_norm, Presence::required);
    matrix(block + "attn_q.weight", width, q, to.attn_q, Presence::required);
    matrix(block + "attn_k.weight", width, kv, to.attn_k, Presence::required);
    matrix(block + "attn_v.weight", width, kv, to.attn_v, Presence::required);
    vector(block + "attn_q.bias", q, to.attn_q_bias, Presence::optional);
    vector(block + "attn_k.bias", kv, to.attn_k_bias, Presence::optional);
    vector(block + "attn_v.bias", kv, to.attn_v_bias, Presence::optional);
    vector(block + "attn_q_norm.weight", config_.head_width, to.attn_q_norm, architecture_.qk_norm);
    vector(block + "attn_k_norm.weight", config_.head_width, to.attn_k_norm, architecture_.qk_norm);
    matrix(block + "attn_output.weight", q, width, to.attn_output, Presence::required);
    vector(block + "attn_output.bias", width, to.attn_output_bias, architecture_.output_bias);
    vector(block + "post_attention_norm.weight", width, to.attn_post_norm, architecture_.post_norms);
  }

  void feed_forward(const std::string& block, std::int64_t inner, LayerWeights& to) {
    const std::int64_t width = config_.embedding;
    const Presence bias = architecture_.feed_forward_biases;
    vector(block + "ffn_norm.weight", width, to.ffn_norm, Presence::required);
    matrix(block + "ffn_gate.weight", width, inner, to.ffn_gate, Presence::required);
    matrix(block + "ffn_up.weight", width, inner, to.ffn_up, Presence::required);
    matrix(block + "ffn_down.weight", inner, width, to.ffn_down, Presence::required);
    vector(block + "ffn_gate.bias", inner, to.ffn_gate_bias, bias);
    vector(block + "ffn_up.bias", inner, to.ffn_up_bias, bias);
    vector(block + "ffn_down.bias", width, to.ffn_down_bias, bias);
    vector(block + "post_ffw_norm.weight", width, to.ffn_post_norm, architecture_.post_norms);
  }

  const Config& config_;
  const Architecture& architecture_;
  std::vector<WeightSpec> specs_;
};

}  // namespace

std::vector<WeightSpec> weight_table(const Config& config, const Architecture& architecture, ModelWeights& weights) {
  return TableBuilder(config, architecture).build(weights);
}

const GgufTensor* find_weight(const GgufFile& gguf, const WeightSpec& spec) {
  const GgufTensor* tensor = gguf.find_tensor(spec.name);
  if (tensor == nullptr && !spec.stand_in.empty()) tensor = gguf.find_tensor(spec.stand_in);
  if (tensor == nullptr) {
    if (spec.required) {
      gguf.fail(fmt::format("tensor '{}' of shape {} is missing", spec.name, shape_text(spec.shape)));
    }
    return nullptr;
  }
  std::array<std::int64_t, 4> expected = {1, 1, 1, 1};
  std::copy(spec.shape.begin(), spec.shape.end(), expected.begin());
  if (tensor->shape != expected) {
    gguf.fail(fmt::format("tensor '{}' should have shape {}, found {}", tensor->name, shape_text(spec.shape),
                          shape_text(tensor->shape)));
  }
  return tensor;
}

}  // namespace razorkv
