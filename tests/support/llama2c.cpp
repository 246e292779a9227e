#include "support/llama2c.h"

#include <array>
#include <cstdint>
#include <fstream>
#include <stdexcept>
#include <utility>

namespace razorkv::test {
namespace {

struct Sizes {
  std::int64_t width, inner, layers, heads, kv_heads, vocabulary, context;
  std::int64_t kv_width() const { return width / heads * kv_heads; }
  /// Floats of the file, the two unused tables of rotations included. The output is tied.
  std::int64_t floats() const {
    const std::int64_t attention = width * (2 * width + 2 * kv_width());
    return vocabulary * width + layers * (2 * width + attention + 3 * width * inner) + width +
           context * (width / heads);
  }
};

/// Hands out the weights in the file's order.
class Weights {
 public:
  explicit Weights(std::ifstream& in) : in_(in) {}
  std::vector<float> take(std::int64_t count) {
    std::vector<float> values(static_cast<std::size_t>(count));
    in_.read(reinterpret_cast<char*>(values.data()), static_cast<std::streamsize>(values.size() * sizeof(float)));
    return values;
  }

 private:
  std::ifstream& in_;
};

}  // namespace

TinyGguf read_llama2c(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::array<std::int32_t, 7> header{};
  in.read(reinterpret_cast<char*>(header.data()), sizeof(header));
  if (!in) throw std::runtime_error(path + " is too short for a llama2.c model");
  for (const std::int32_t size : header) {
    if (size <= 0) throw std::runtime_error(path + ": only llama2.c models with a tied output are read");
  }
  const Sizes s = {header[0], header[1], header[2], header[3], header[4], header[5], header[6]};
  in.seekg(0, std::ios::end);
  if (in.tellg() != static_cast<std::streamoff>(sizeof(header)) + s.floats() * std::int64_t{sizeof(float)}) {
    throw std::runtime_error(path + " does not have the size that its header implies");
  }
  in.seekg(sizeof(header));

  TinyGguf gguf({.embedding = s.width,
                 .layers = s.layers,
                 .heads = s.heads,
                 .kv_heads = s.kv_heads,
                 .head_width = s.width / s.heads,
                 .vocabulary = s.vocabulary,
                 .feed_forward = s.inner,
                 .context = s.context,
                 .tied_output = true});
  Weights weights(in);
  const auto each_layer = [&](const char* name, std::int64_t count) {
    for (std::int64_t i = 0; i < s.layers; ++i) {
      gguf.tensor("blk." + std::to_string(i) + "." + name + ".weight").values = weights.take(count);
    }
  };
  gguf.tensor("token_embd.weight").values = weights.take(s.vocabulary * s.width);
  each_layer("attn_norm", s.width);
  each_layer("attn_q", s.width * s.width);
  each_layer("attn_k", s.width * s.kv_width());
  each_layer("attn_v", s.width * s.kv_width());
  each_layer("attn_output", s.width * s.width);
  each_layer("ffn_norm", s.width);
  each_layer("ffn_gate", s.width * s.inner);
  each_layer("ffn_down", s.width * s.inner);
  each_layer("ffn_up", s.width * s.inner);
  gguf.tensor("output_norm.weight").values = weights.take(s.width);
  return gguf;
}

}  // namespace razorkv::test
