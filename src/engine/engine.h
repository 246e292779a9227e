// Forward passes of a model over sequences with a paged cache per KV head.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "cache/kv_sequence.h"
#include "cache/page_pool.h"
#include "engine/attention_observer.h"
#include "model/loaded_model.h"
#include "razorkv/types.h"

namespace razorkv {

struct EngineSettings {
  int threads = 1;        ///< threads of a batch of few tokens (decode)
  int threads_batch = 1;  ///< threads of larger batches (prefill)
  RowType row_type = RowType::f16;
  std::size_t kv_budget_bytes = 0;  ///< 0 = no limit
};

/// One sequence's part of a batch.
struct BatchItem {
  KvSequence* sequence = nullptr;
  std::span<const Token> tokens;  ///< appended at the sequence's next positions
  std::int64_t outputs = 1;       ///< the last `outputs` tokens get logits; 0..tokens.size()
};

/// Not thread-safe: one call at a time. Sequences must not outlive their engine.
class Engine {
 public:
  Engine(std::shared_ptr<const LoadedModel> model, const EngineSettings& settings);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  const LoadedModel& model() const noexcept;
  const EngineSettings& settings() const noexcept;

  /// An empty sequence under `policy` (shape: the model's layers and KV heads).
  KvSequence new_sequence(std::shared_ptr<const KvPolicy> policy) const;
  /// A policy that keeps everything in every head.
  std::shared_ptr<const KvPolicy> full_policy() const;

  /// One forward pass over all items at once, each sequence at most once. Logits [sum of outputs, vocabulary] in item
  /// order, valid until the next call. Throws InvalidArgument (token outside the vocabulary, empty batch, a sequence
  /// twice), OutOfBudget, OutOfMemory, Cancelled; then no sequence has changed.
  std::span<const float> decode(std::span<const BatchItem> items);

  /// Polled between graph nodes, from any thread: true stops decode() with Cancelled. Null = never.
  void set_cancel_flag(const std::atomic<bool>* flag) noexcept;
  /// Null = none. The observer must outlive its use.
  void set_observer(AttentionObserver* observer) noexcept;

  PoolStats pool_stats() const noexcept;
  PagePool& pool() noexcept;
  /// Bytes of graph buffers (activations, scratch).
  std::size_t compute_bytes() const noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace razorkv
