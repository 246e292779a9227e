// A decoder graph for one batch shape, allocated and ready to run again and again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "model/decoder_graph.h"

struct ggml_backend_buffer_type;

namespace razorkv {

struct GraphShape {
  std::int64_t tokens = 0;
  std::int64_t outputs = 0;
  bool observed = false;
  bool operator==(const GraphShape&) const = default;
};

class CompiledGraph {
 public:
  /// Throws OutOfMemory.
  CompiledGraph(const LoadedModel& model, const GraphShape& shape, AttentionHook& hook);
  ~CompiledGraph();
  CompiledGraph(const CompiledGraph&) = delete;
  CompiledGraph& operator=(const CompiledGraph&) = delete;

  const GraphShape& shape() const noexcept { return shape_; }
  const DecoderGraph& tensors() const noexcept { return tensors_; }
  ggml_cgraph* graph() const noexcept { return graph_; }
  std::size_t bytes() const noexcept;

 private:
  struct Memory;
  GraphShape shape_;
  std::unique_ptr<Memory> memory_;
  ggml_cgraph* graph_ = nullptr;
  DecoderGraph tensors_;
};

}  // namespace razorkv
