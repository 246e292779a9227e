// The tensors that a Config asks for: name, shape, what they are used for, and where their pointer goes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/architecture.h"
#include "model/config.h"
#include "model/gguf_file.h"
#include "model/loaded_model.h"

namespace razorkv {

enum class WeightUse : std::uint8_t {
  matmul,  ///< left side of a matrix product; any type that ggml multiplies, may be repacked
  rows,    ///< rows are looked up by token
  vector   ///< added or multiplied element by element; float32
};

struct ModelWeights {
  ggml_tensor* token_embedding = nullptr;
  ggml_tensor* output_norm = nullptr;
  ggml_tensor* output = nullptr;
  ggml_tensor* rope_factors = nullptr;  ///< [rope.dims / 2], for all layers; null where the model has none
  std::vector<LayerWeights> layers;
};

struct WeightSpec {
  std::string name;                 ///< in the file
  std::vector<std::int64_t> shape;  ///< ggml order
  WeightUse use = WeightUse::matmul;
  bool required = true;
  ggml_tensor** slot = nullptr;  ///< in the ModelWeights that the table was made for
  std::string stand_in;          ///< tensor to use where `name` is absent; empty = none
};

/// `weights` is sized to the layers; it must stay where it is while the table is used. The RoPE factors are one
/// tensor for all layers: its slot is layer 0's.
std::vector<WeightSpec> weight_table(const Config& config, const Architecture& architecture, ModelWeights& weights);

/// The file's tensor of a spec; null where it is absent and optional. Throws FileError where it is absent and
/// required, or has another shape.
const GgufTensor* find_weight(const GgufFile& gguf, const WeightSpec& spec);

}  // namespace razorkv
