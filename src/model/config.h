// Shape and constants of a decoder, read from GGUF metadata and checked once at load.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace razorkv {

enum class RopeKind : std::uint8_t {
  adjacent,  ///< pairs (2i, 2i + 1), as in llama's GGUF layout
  halves     ///< pairs (i, i + n / 2), as in qwen2, qwen3, gemma3
};

enum class RopeScaling : std::uint8_t { none, linear, yarn };

struct RopeConfig {
  RopeKind kind = RopeKind::adjacent;
  std::int64_t dims = 0;          ///< rotated elements of a head, even, <= head width
  float base = 10000.0F;          ///< of full-attention layers
  float base_sliding = 10000.0F;  ///< of sliding-window layers
  float scale = 1.0F;             ///< 1 / scaling factor, full-attention layers
  float scale_sliding = 1.0F;
  RopeScaling scaling = RopeScaling::none;
  std::int64_t original_context = 0;  ///< tokens; YaRN
  float yarn_ext_factor = 0.0F;
  float yarn_attn_factor = 1.0F;
  float yarn_beta_fast = 32.0F;
  float yarn_beta_slow = 1.0F;
};

struct LayerConfig {
  std::int64_t heads = 0;         ///< query heads
  std::int64_t kv_heads = 0;      ///< divides heads
  std::int64_t feed_forward = 0;  ///< width of the FFN
  bool sliding = false;           ///< this layer has the model's own sliding window
};

/// Architectures differ by these fields and by the tensors that are present, never by name.
struct Config {
  std::string architecture;     ///< general.architecture
  std::string name;             ///< general.name, may be empty
  std::int64_t embedding = 0;   ///< width of the residual stream
  std::int64_t vocabulary = 0;  ///< rows of the embedding
  std::int64_t context = 0;     ///< tokens the model was trained for
  std::int64_t head_width = 0;  ///< elements of one K (and V, and Q) row; need not be embedding / heads
  std::vector<LayerConfig> layers;
  float norm_epsilon = 1e-5F;
  float attention_scale = 0.0F;     ///< logit = attention_scale * q.k
  float attention_soft_cap = 0.0F;  ///< 0 = none
  float final_soft_cap = 0.0F;      ///< 0 = none
  float embedding_scale = 1.0F;     ///< token embeddings are multiplied by it
  std::int64_t sliding_window = 0;  ///< keys that a sliding layer sees, the query's own included; 0 = no such layer
  bool gelu = false;                ///< FFN activation: tanh GELU (gemma) instead of SiLU
  RopeConfig rope;

  std::int64_t layer_count() const { return static_cast<std::int64_t>(layers.size()); }
  /// KV bytes of one token, uncompressed, at `element_bytes` per element.
  std::int64_t kv_bytes_per_token(std::int64_t element_bytes) const {
    std::int64_t kv_heads = 0;
    for (const LayerConfig& layer : layers) kv_heads += layer.kv_heads;
    return 2 * kv_heads * head_width * element_bytes;
  }
};

}  // namespace razorkv
