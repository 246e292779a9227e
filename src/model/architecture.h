// What an architecture name in a GGUF stands for, as data. A new architecture is a new row of the table.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "model/config.h"

namespace razorkv {

enum class Presence : std::uint8_t { absent, optional, required };

struct Architecture {
  std::string_view name;  ///< general.architecture
  RopeKind rope = RopeKind::adjacent;
  Presence separate_output = Presence::optional;  ///< output.weight; where it is missing the embedding is used
  Presence qk_norm = Presence::absent;
  Presence post_norms = Presence::absent;
  Presence output_bias = Presence::absent;  ///< blk.N.attn_output.bias
  Presence feed_forward_biases = Presence::absent;
  Presence rope_factors = Presence::absent;  ///< rope_freqs.weight
  bool partial_rotary = false;               ///< rope.dimension_count may be less than the head width
  bool gelu = false;
  bool scale_embedding = false;     ///< by sqrt(width)
  float attention_soft_cap = 0.0F;  ///< where the file does not say; 0 = none
  float final_soft_cap = 0.0F;
  std::int64_t sliding_window = 0;     ///< where the file does not say; 0 = only if it says
  std::int64_t sliding_period = 0;     ///< every so many layers one sees everything; 0 = no sliding layers
  bool sliding_rope_is_local = false;  ///< sliding layers: base 10000, unscaled, where the file does not say
  std::int64_t wide_query_layers = 0;  ///< at this layer count logits scale with width / heads, not head width
};

std::span<const Architecture> architectures();

/// Null where the name is unknown.
const Architecture* find_architecture(std::string_view name);

}  // namespace razorkv
