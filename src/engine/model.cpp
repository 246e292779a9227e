#include "razorkv/model.h"

#include <utility>

#include "engine/model_handle.h"
#include "model/chat_template.h"

namespace razorkv {

Model Model::load(const std::string& path, const LoadOptions& options) {
  auto impl = std::make_shared<Impl>();
  impl->loaded = LoadedModel::load(path, {options.use_mmap, options.repack});
  impl->vocabulary = Vocabulary::open(path);
  return Model(std::move(impl));
}

ModelInfo Model::info() const {
  const Config& config = impl_->loaded->config();
  const WeightBytes weights = impl_->loaded->weight_bytes();
  ModelInfo info;
  info.path = impl_->loaded->path();
  info.architecture = config.architecture;
  info.name = config.name;
  info.fingerprint = impl_->loaded->fingerprint();
  info.layers = config.layer_count();
  for (const LayerConfig& layer : config.layers) {
    info.query_heads += layer.heads;
    info.kv_heads += layer.kv_heads;
  }
  info.head_width = config.head_width;
  info.vocabulary = config.vocabulary;
  info.context = config.context;
  info.kv_bytes_per_token_f16 = config.kv_bytes_per_token(2);
  info.mapped_bytes = weights.mapped;
  info.copied_bytes = weights.copied;
  info.repacked_bytes = weights.repacked;
  return info;
}

std::vector<Token> Model::tokenize(std::string_view text, bool add_special, bool parse_special) const {
  return impl_->vocabulary->tokenize(text, add_special, parse_special);
}

std::string Model::detokenize(std::span<const Token> tokens, bool special) const {
  return impl_->vocabulary->detokenize(tokens, special);
}

bool Model::ends_generation(Token token) const { return impl_->vocabulary->is_end_of_generation(token); }

std::vector<Token> Model::render_chat(std::span<const ChatMessage> messages) const {
  return ChatTemplate(impl_->vocabulary).render(messages);
}

}  // namespace razorkv
