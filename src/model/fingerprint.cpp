#include "model/fingerprint.h"

#include <algorithm>

#include "base/sha256.h"

namespace razorkv {
namespace {

constexpr std::size_t kSampleBytes = 256;

void add_text(Sha256& hash, const std::string& text) {
  hash.update_number(text.size());
  hash.update(text);
}

void add_samples(Sha256& hash, std::span<const std::byte> data) {
  const std::size_t taken = std::min(kSampleBytes, data.size());
  const std::size_t last = data.size() - taken;
  for (const std::size_t start : {std::size_t{0}, last / 2, last}) hash.update(data.subspan(start, taken));
}

}  // namespace

std::string model_fingerprint(const GgufFile& gguf, const Config& config) {
  Sha256 hash;
  hash.update("razorkv model 1\n");
  add_text(hash, config.architecture);
  for (const std::int64_t size : {config.embedding, config.vocabulary, config.context, config.head_width,
                                  config.rope.dims, config.sliding_window}) {
    hash.update_number(static_cast<std::uint64_t>(size));
  }
  for (const LayerConfig& layer : config.layers) {
    hash.update_number(static_cast<std::uint64_t>(layer.heads));
    hash.update_number(static_cast<std::uint64_t>(layer.kv_heads));
    hash.update_number(static_cast<std::uint64_t>(layer.feed_forward));
  }
  for (const GgufTensor& tensor : gguf.tensors()) {
    add_text(hash, tensor.name);
    hash.update_number(tensor.type);
    for (const std::int64_t size : tensor.shape) hash.update_number(static_cast<std::uint64_t>(size));
    hash.update_number(tensor.offset);
    add_samples(hash, gguf.data(tensor));
  }
  return hash.hex();
}

}  // namespace razorkv
