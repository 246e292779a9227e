// Weights in memory: used where they lie in the mapping, copied, or repacked by ggml's CPU code.
#pragma once

#include <ggml-backend.h>
#include <ggml.h>

#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/file_mapping.h"
#include "model/gguf_file.h"
#include "model/loaded_model.h"
#include "model/weight_table.h"

namespace razorkv {

struct GgmlContextFree {
  void operator()(ggml_context* context) const { ggml_free(context); }
};
struct GgmlBufferFree {
  void operator()(ggml_backend_buffer_t buffer) const { ggml_backend_buffer_free(buffer); }
};
using GgmlContext = std::unique_ptr<ggml_context, GgmlContextFree>;
using GgmlBuffer = std::unique_ptr<ggml_backend_buffer, GgmlBufferFree>;

/// Owns the tensors that a ModelWeights points to.
class WeightStore {
 public:
  /// Fills the slots of `table`. The mapping must outlive the store where anything is used in place.
  /// Throws FileError (missing tensor, wrong shape), OutOfMemory.
  WeightStore(const FileMapping& mapping, const GgufFile& gguf, const std::vector<WeightSpec>& table,
              const LoadSettings& settings);

  WeightBytes bytes() const { return bytes_; }

 private:
  /// Tensors that share a kind of memory.
  struct Group {
    ggml_backend_buffer_type_t type = nullptr;  ///< null = in place
    GgmlContext context;
    GgmlBuffer buffer;
    std::vector<std::pair<ggml_tensor*, const GgufTensor*>> tensors;
  };

  ggml_backend_buffer_type_t place_of(const GgufFile& gguf, const GgufTensor& tensor, WeightUse use,
                                      bool use_mmap) const;
  ggml_tensor* add(const GgufTensor& tensor, ggml_backend_buffer_type_t type);
  Group& group_of(ggml_backend_buffer_type_t type);
  void use_in_place(const FileMapping& mapping, const GgufFile& gguf, Group& group);
  void copy(const FileMapping& mapping, const GgufFile& gguf, Group& group);

  bool fast_products_;
  std::vector<ggml_backend_buffer_type_t> repacking_;
  std::vector<Group> groups_;
  std::unordered_map<const GgufTensor*, ggml_tensor*> plain_;  ///< not repacked, so that a second use needs no copy
  std::size_t capacity_ = 0;                                   ///< tensors per group
  WeightBytes bytes_;
};

}  // namespace razorkv
