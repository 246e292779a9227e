// Tiny random models as GGUF files, one per architecture and feature, or with tensors set by hand.
#pragma once

#include <ggml.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

struct gguf_context;

namespace razorkv::test {

struct TinyOptions {
  std::string architecture = "llama";  ///< llama, qwen2, qwen3, gemma2, gemma3
  std::int64_t embedding = 64;
  std::int64_t layers = 2;
  std::int64_t heads = 4;
  std::int64_t kv_heads = 2;
  std::vector<std::int64_t> heads_per_layer = {};  ///< written as arrays where not empty
  std::vector<std::int64_t> kv_heads_per_layer = {};
  std::int64_t head_width = 16;
  std::int64_t vocabulary = 96;
  std::int64_t feed_forward = 80;
  std::int64_t context = 1024;
  float norm_epsilon = 1e-5F;

  bool qkv_bias = false;
  bool output_bias = false;        ///< of attn_output; llama only
  bool feed_forward_bias = false;  ///< llama only
  bool tied_output = false;
  bool rope_factors = false;  ///< rope_freqs.weight; llama only

  std::optional<std::int64_t> rope_dims = {};
  std::optional<float> rope_base = {};
  std::string rope_scaling = {};  ///< "", none, linear, yarn
  std::optional<float> rope_factor = {};
  std::optional<float> rope_attn_factor = {};
  std::optional<float> rope_yarn_attn_factor = {};
  std::optional<std::int64_t> rope_original_context = {};

  std::optional<std::int64_t> sliding_window = {};
  std::optional<std::int64_t> sliding_period = {};
  std::optional<float> attention_soft_cap = {};
  std::optional<float> final_soft_cap = {};

  ggml_type weight_type = GGML_TYPE_F32;  ///< of matrices; vectors are always f32
  std::uint64_t seed = 1;
};

struct TinyTensor {
  std::vector<std::int64_t> shape;  ///< ggml order
  std::vector<float> values;
  ggml_type type = GGML_TYPE_F32;
};

/// A model that can be changed before it is written.
class TinyGguf {
 public:
  /// Random tensors (normal, signed, different for every tensor and seed) of the options' shapes.
  explicit TinyGguf(const TinyOptions& options);

  const TinyOptions& options() const { return options_; }
  TinyTensor& tensor(const std::string& name) { return tensors_.at(name); }
  bool has(const std::string& name) const { return tensors_.contains(name); }
  void set(const std::string& name, TinyTensor tensor) { tensors_[name] = std::move(tensor); }
  void remove(const std::string& name) { tensors_.erase(name); }
  /// All values of all tensors become 0 (for models that are set by hand).
  void clear_values();
  /// Runs on the metadata before it is written, after the usual keys; for example to add a vocabulary or to break
  /// a key. Keys that are set again are replaced.
  void edit_metadata(std::function<void(gguf_context*)> edit) { edits_.push_back(std::move(edit)); }

  /// Throws std::runtime_error.
  void write(const std::string& path) const;
  /// Writes to a file of its own in the tests' temporary folder and returns its path.
  std::string write_temporary() const;

 private:
  void add(const std::string& name, std::vector<std::int64_t> shape, float mean, float deviation);
  void add_layer(std::int64_t index);
  void write_keys(gguf_context* gguf) const;

  TinyOptions options_;
  std::map<std::string, TinyTensor> tensors_;
  std::vector<std::function<void(gguf_context*)>> edits_;
};

}  // namespace razorkv::test
