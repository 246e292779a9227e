// A model in memory: checked configuration and weights.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "model/config.h"
#include "model/rotation.h"

struct ggml_tensor;

namespace razorkv {

struct LoadSettings {
  bool use_mmap = true;       ///< weights that are used as they lie in the file are mapped, not read
  bool repack = true;         ///< let ggml's CPU code repack weights where that makes matmul faster
  bool fast_products = true;  ///< batches of many tokens use our 8-bit products (matrix_product.h), not ggml's
};

struct WeightBytes {
  std::size_t mapped = 0;    ///< used in place in the file's mapping
  std::size_t copied = 0;    ///< copied to memory as they are
  std::size_t repacked = 0;  ///< copied to memory in another layout
};

/// Tensors of one layer; null where the model has none. Names in the GGUF: blk.{i}.{name}.weight|bias.
struct LayerWeights {
  ggml_tensor* attn_norm = nullptr;
  ggml_tensor *attn_q = nullptr, *attn_k = nullptr, *attn_v = nullptr, *attn_output = nullptr;
  ggml_tensor *attn_q_bias = nullptr, *attn_k_bias = nullptr, *attn_v_bias = nullptr, *attn_output_bias = nullptr;
  ggml_tensor *attn_q_norm = nullptr, *attn_k_norm = nullptr;
  ggml_tensor* attn_post_norm = nullptr;
  ggml_tensor* ffn_norm = nullptr;
  ggml_tensor *ffn_gate = nullptr, *ffn_up = nullptr, *ffn_down = nullptr;
  ggml_tensor *ffn_gate_bias = nullptr, *ffn_up_bias = nullptr, *ffn_down_bias = nullptr;
  ggml_tensor* ffn_post_norm = nullptr;
};

class LoadedModel {
 public:
  /// Throws FileError (unreadable, cut, corrupt), UnsupportedModel (architecture, tensor type), OutOfMemory.
  static std::shared_ptr<const LoadedModel> load(const std::string& path, const LoadSettings& settings);
  ~LoadedModel();
  LoadedModel(const LoadedModel&) = delete;
  LoadedModel& operator=(const LoadedModel&) = delete;

  const Config& config() const;
  const std::string& path() const;
  ggml_tensor* token_embedding() const;
  ggml_tensor* output_norm() const;
  ggml_tensor* output() const;  ///< the embedding where the output is tied
  const LayerWeights& layer(std::int64_t index) const;
  const Rotation& rotation(bool sliding) const;
  WeightBytes weight_bytes() const;
  bool fast_products() const;
  /// 64 hex digits: SHA-256 over architecture, sizes, tensor names, types, shapes, offsets and a sample of the data.
  const std::string& fingerprint() const;

 private:
  struct Impl;
  explicit LoadedModel(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace razorkv
