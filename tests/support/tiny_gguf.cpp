#include "support/tiny_gguf.h"

#include <gguf.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <numeric>
#include <random>
#include <stdexcept>

namespace razorkv::test {
namespace {

struct GgufFree {
  void operator()(gguf_context* gguf) const { gguf_free(gguf); }
};
struct ContextFree {
  void operator()(ggml_context* context) const { ggml_free(context); }
};

bool is_gemma(const std::string& architecture) { return architecture.starts_with("gemma"); }

std::int64_t element_count(const std::vector<std::int64_t>& shape) {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

std::vector<std::uint8_t> encode(const TinyTensor& tensor) {
  const std::int64_t row = tensor.shape[0];
  const std::int64_t rows = element_count(tensor.shape) / row;
  std::vector<std::uint8_t> bytes(ggml_row_size(tensor.type, row) * static_cast<std::size_t>(rows));
  if (tensor.type == GGML_TYPE_F32) {
    std::memcpy(bytes.data(), tensor.values.data(), bytes.size());
  } else {
    ggml_quantize_chunk(tensor.type, tensor.values.data(), bytes.data(), 0, rows, row, nullptr);
  }
  return bytes;
}

void set_counts(gguf_context* gguf, const std::string& key, std::int64_t one, const std::vector<std::int64_t>& each) {
  if (each.empty()) {
    gguf_set_val_u32(gguf, key.c_str(), static_cast<std::uint32_t>(one));
    return;
  }
  const std::vector<std::uint32_t> counts(each.begin(), each.end());
  gguf_set_arr_data(gguf, key.c_str(), GGUF_TYPE_UINT32, counts.data(), counts.size());
}

}  // namespace

TinyGguf::TinyGguf(const TinyOptions& options) : options_(options) {
  add("token_embd.weight", {options_.embedding, options_.vocabulary}, 0.0F, 1.0F);
  add("output_norm.weight", {options_.embedding}, 1.0F, 0.2F);
  if (!options_.tied_output) {
    add("output.weight", {options_.embedding, options_.vocabulary}, 0.0F,
        1.0F / std::sqrt(static_cast<float>(options_.embedding)));
  }
  if (options_.rope_factors) {
    const std::int64_t pairs = options_.rope_dims.value_or(options_.head_width) / 2;
    add("rope_freqs.weight", {pairs}, 1.0F, 0.0F);
    // Between 1 and 8, rising, as llama 3 has them.
    for (std::int64_t i = 0; i < pairs; ++i) {
      tensor("rope_freqs.weight").values[static_cast<std::size_t>(i)] =
          1.0F + 7.0F * static_cast<float>(i) / static_cast<float>(pairs);
    }
  }
  for (std::int64_t i = 0; i < options_.layers; ++i) add_layer(i);
}

void TinyGguf::add(const std::string& name, std::vector<std::int64_t> shape, float mean, float deviation) {
  std::seed_seq seed(name.begin(), name.end());
  std::mt19937_64 mixed(seed);
  std::mt19937_64 generator(mixed() ^ options_.seed * 0x9e3779b97f4a7c15ULL);
  std::normal_distribution<float> normal(mean, deviation);
  TinyTensor made;
  made.values.resize(static_cast<std::size_t>(element_count(shape)));
  for (float& value : made.values) value = deviation == 0.0F ? mean : normal(generator);
  made.type = shape.size() > 1 ? options_.weight_type : GGML_TYPE_F32;
  made.shape = std::move(shape);
  tensors_[name] = std::move(made);
}

void TinyGguf::add_layer(std::int64_t index) {
  const auto layer = static_cast<std::size_t>(index);
  const std::string block = "blk." + std::to_string(index) + ".";
  const std::int64_t width = options_.embedding;
  const std::int64_t heads = options_.heads_per_layer.empty() ? options_.heads : options_.heads_per_layer[layer];
  const std::int64_t kv_heads =
      options_.kv_heads_per_layer.empty() ? options_.kv_heads : options_.kv_heads_per_layer[layer];
  const std::int64_t q = heads * options_.head_width;
  const std::int64_t kv = kv_heads * options_.head_width;
  const std::int64_t inner = options_.feed_forward;
  const auto matrix = [&](const char* name, std::int64_t in, std::int64_t out) {
    add(block + name + ".weight", {in, out}, 0.0F, 1.0F / std::sqrt(static_cast<float>(in)));
  };
  const auto bias = [&](const char* name, std::int64_t size) { add(block + name + ".bias", {size}, 0.0F, 0.3F); };
  const auto norm = [&](const char* name, std::int64_t size) { add(block + name + ".weight", {size}, 1.0F, 0.2F); };
  norm("attn_norm", width);
  matrix("attn_q", width, q);
  matrix("attn_k", width, kv);
  matrix("attn_v", width, kv);
  matrix("attn_output", q, width);
  norm("ffn_norm", width);
  matrix("ffn_gate", width, inner);
  matrix("ffn_up", width, inner);
  matrix("ffn_down", inner, width);
  if (options_.qkv_bias) {
    bias("attn_q", q);
    bias("attn_k", kv);
    bias("attn_v", kv);
  }
  if (options_.output_bias) bias("attn_output", width);
  if (options_.feed_forward_bias) {
    bias("ffn_gate", inner);
    bias("ffn_up", inner);
    bias("ffn_down", width);
  }
  if (options_.architecture == "qwen3" || options_.architecture == "gemma3") {
    norm("attn_q_norm", options_.head_width);
    norm("attn_k_norm", options_.head_width);
  }
  if (is_gemma(options_.architecture)) {
    norm("post_attention_norm", width);
    norm("post_ffw_norm", width);
  }
}

void TinyGguf::clear_values() {
  for (auto& [name, tensor] : tensors_) std::fill(tensor.values.begin(), tensor.values.end(), 0.0F);
}

void TinyGguf::write_keys(gguf_context* gguf) const {
  const TinyOptions& o = options_;
  const auto key = [&](const char* name) { return o.architecture + "." + name; };
  const auto count = [&](const char* name, std::int64_t value) {
    gguf_set_val_u32(gguf, key(name).c_str(), static_cast<std::uint32_t>(value));
  };
  const auto real = [&](const char* name, float value) { gguf_set_val_f32(gguf, key(name).c_str(), value); };
  gguf_set_val_str(gguf, "general.architecture", o.architecture.c_str());
  gguf_set_val_str(gguf, "general.name", "tiny");
  gguf_set_val_str(gguf, "tokenizer.ggml.model", "no_vocab");
  count("vocab_size", o.vocabulary);
  count("context_length", o.context);
  count("embedding_length", o.embedding);
  count("block_count", o.layers);
  count("feed_forward_length", o.feed_forward);
  set_counts(gguf, key("attention.head_count"), o.heads, o.heads_per_layer);
  set_counts(gguf, key("attention.head_count_kv"), o.kv_heads, o.kv_heads_per_layer);
  count("attention.key_length", o.head_width);
  count("attention.value_length", o.head_width);
  real("attention.layer_norm_rms_epsilon", o.norm_epsilon);
  if (o.rope_dims || o.architecture == "llama") count("rope.dimension_count", o.rope_dims.value_or(o.head_width));
  if (o.rope_base) real("rope.freq_base", *o.rope_base);
  if (!o.rope_scaling.empty()) gguf_set_val_str(gguf, key("rope.scaling.type").c_str(), o.rope_scaling.c_str());
  if (o.rope_factor) real("rope.scaling.factor", *o.rope_factor);
  if (o.rope_attn_factor) real("rope.scaling.attn_factor", *o.rope_attn_factor);
  if (o.rope_yarn_attn_factor) real("rope.scaling.yarn_attn_factor", *o.rope_yarn_attn_factor);
  if (o.rope_original_context) count("rope.scaling.original_context_length", *o.rope_original_context);
  if (o.sliding_window) count("attention.sliding_window", *o.sliding_window);
  if (o.sliding_period) count("attention.sliding_window_pattern", *o.sliding_period);
  if (o.attention_soft_cap) real("attn_logit_softcapping", *o.attention_soft_cap);
  if (o.final_soft_cap) real("final_logit_softcapping", *o.final_soft_cap);
}

void TinyGguf::write(const std::string& path) const {
  const std::unique_ptr<gguf_context, GgufFree> gguf(gguf_init_empty());
  write_keys(gguf.get());
  for (const auto& edit : edits_) edit(gguf.get());
  const std::unique_ptr<ggml_context, ContextFree> context(
      ggml_init({ggml_tensor_overhead() * tensors_.size(), nullptr, true}));
  std::vector<std::vector<std::uint8_t>> contents;
  for (const auto& [name, tensor] : tensors_) {
    if (static_cast<std::int64_t>(tensor.values.size()) != element_count(tensor.shape)) {
      throw std::runtime_error("tensor " + name + " does not have as many values as its shape says");
    }
    ggml_tensor* made =
        ggml_new_tensor(context.get(), tensor.type, static_cast<int>(tensor.shape.size()), tensor.shape.data());
    ggml_set_name(made, name.c_str());
    contents.push_back(encode(tensor));
    made->data = contents.back().data();
    gguf_add_tensor(gguf.get(), made);
  }
  if (!gguf_write_to_file(gguf.get(), path.c_str(), false)) throw std::runtime_error("cannot write " + path);
}

std::string TinyGguf::write_temporary() const {
  static std::atomic<int> number = 0;
  const std::string path = testing::TempDir() + "razorkv_tiny_" + std::to_string(getpid()) + "_" +
                           std::to_string(number.fetch_add(1)) + ".gguf";
  write(path);
  return path;
}

}  // namespace razorkv::test
