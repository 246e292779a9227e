// Puts the cache and our attention into the decoder graph as ggml custom operations.
#pragma once

#include <cstdint>
#include <deque>

#include "engine/batch_run.h"
#include "model/decoder_graph.h"

namespace razorkv {

/// One per compiled graph. Each layer becomes: store (rows to pages) -> attend -> observe (only when wanted).
class AttentionOps : public AttentionHook {
 public:
  AttentionOps(BatchRun& run, bool observed) : run_(run), observed_(observed) {}

  ggml_tensor* attend(ggml_context* context, ggml_cgraph* graph, std::int64_t layer,
                      const LayerTensors& tensors) override;

  struct LayerOp {
    BatchRun* run;
    std::int64_t layer;
  };

 private:
  BatchRun& run_;
  bool observed_;
  std::deque<LayerOp> layers_;  // addresses are handed to ggml and must not move
};

}  // namespace razorkv
