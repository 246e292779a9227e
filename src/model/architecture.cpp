#include "model/architecture.h"

#include <algorithm>
#include <array>

namespace razorkv {
namespace {

constexpr std::array<Architecture, 5> kArchitectures = {{
    {.name = "llama",
     .output_bias = Presence::optional,
     .feed_forward_biases = Presence::optional,
     .rope_factors = Presence::optional},
    {.name = "qwen2", .rope = RopeKind::halves},
    {.name = "qwen3", .rope = RopeKind::halves, .qk_norm = Presence::required},
    {.name = "gemma2",
     .rope = RopeKind::halves,
     .separate_output = Presence::absent,
     .post_norms = Presence::required,
     .partial_rotary = true,
     .gelu = true,
     .scale_embedding = true,
     .attention_soft_cap = 50.0F,
     .final_soft_cap = 30.0F,
     .sliding_window = 4096,
     .sliding_period = 2,
     .wide_query_layers = 46},
    {.name = "gemma3",
     .rope = RopeKind::halves,
     .qk_norm = Presence::required,
     .post_norms = Presence::required,
     .partial_rotary = true,
     .gelu = true,
     .scale_embedding = true,
     .sliding_period = 6,
     .sliding_rope_is_local = true,
     .wide_query_layers = 62},
}};

}  // namespace

std::span<const Architecture> architectures() { return kArchitectures; }

const Architecture* find_architecture(std::string_view name) {
  const auto found =
      std::find_if(kArchitectures.begin(), kArchitectures.end(), [&](const Architecture& a) { return a.name == name; });
  return found == kArchitectures.end() ? nullptr : &*found;
}

}  // namespace razorkv
