#include "model/loaded_model.h"

#include <ggml.h>

#include <new>
#include <optional>
#include <span>
#include <utility>

#include "base/file_mapping.h"
#include "model/fingerprint.h"
#include "model/gguf_file.h"
#include "model/library_log.h"
#include "model/read_config.h"
#include "model/unsupported.h"
#include "model/weight_table.h"
#include "model/weights.h"
#include "razorkv/error.h"

namespace razorkv {
namespace {

void refuse_unsupported(const GgufFile& gguf) {
  const std::vector<std::string> reasons = unsupported_features(gguf);
  if (reasons.empty()) return;
  std::string text = gguf.name() + " cannot be run:";
  for (const std::string& reason : reasons) text += "\n  - " + reason;
  throw UnsupportedModel(text);
}

}  // namespace

struct LoadedModel::Impl {
  std::string path;
  std::optional<FileMapping> mapping;  ///< empty where nothing is used in place
  Config config;
  ModelWeights weights;
  std::optional<WeightStore> store;
  std::string fingerprint;
  bool fast_products;
  std::vector<Rotation> rotations;  ///< [sliding]

  Impl(const std::string& from, const LoadSettings& settings)
      : path(from), mapping(from), fast_products(settings.fast_products) {
    const GgufFile gguf = GgufFile::parse(mapping->bytes(), path);
    refuse_unsupported(gguf);
    config = read_config(gguf);
    store.emplace(*mapping, gguf, weight_table(config, require_architecture(gguf), weights), settings);
    for (const bool sliding : {false, true}) rotations.emplace_back(config.rope, sliding, rope_factors());
    fingerprint = model_fingerprint(gguf, config);
    if (store->bytes().mapped == 0) mapping.reset();
  }

  std::span<const float> rope_factors() const {
    const ggml_tensor* factors = weights.rope_factors;
    if (factors == nullptr) return {};
    return {static_cast<const float*>(factors->data), static_cast<std::size_t>(factors->ne[0])};
  }
};

LoadedModel::LoadedModel(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
LoadedModel::~LoadedModel() = default;

std::shared_ptr<const LoadedModel> LoadedModel::load(const std::string& path, const LoadSettings& settings) {
  silence_library_logs();
  try {
    return std::shared_ptr<const LoadedModel>(new LoadedModel(std::make_unique<Impl>(path, settings)));
  } catch (const std::bad_alloc&) {
    throw OutOfMemory("no memory to load " + path);
  }
}

const Config& LoadedModel::config() const { return impl_->config; }
const std::string& LoadedModel::path() const { return impl_->path; }
ggml_tensor* LoadedModel::token_embedding() const { return impl_->weights.token_embedding; }
ggml_tensor* LoadedModel::output_norm() const { return impl_->weights.output_norm; }
ggml_tensor* LoadedModel::output() const { return impl_->weights.output; }
const LayerWeights& LoadedModel::layer(std::int64_t index) const {
  return impl_->weights.layers.at(static_cast<std::size_t>(index));
}
const Rotation& LoadedModel::rotation(bool sliding) const { return impl_->rotations[sliding ? 1 : 0]; }
WeightBytes LoadedModel::weight_bytes() const { return impl_->store->bytes(); }
bool LoadedModel::fast_products() const { return impl_->fast_products; }
const std::string& LoadedModel::fingerprint() const { return impl_->fingerprint; }

}  // namespace razorkv
