// Runs many requests on one engine: one thread, continuous batching, prompts in micro-batches between decode steps.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "cache/page_pool.h"
#include "engine/engine.h"
#include "razorkv/model.h"
#include "razorkv/policy.h"
#include "server/checkpoint_store.h"
#include "server/choice.h"
#include "server/generation.h"
#include "server/slot_table.h"

namespace razorkv::server {

struct SchedulerSettings {
  std::int64_t context = 0;        ///< tokens of one sequence, at most
  std::size_t parallel = 4;        ///< answers generated at once
  std::size_t queue = 64;          ///< requests that may wait
  std::int64_t micro_batch = 128;  ///< prompt tokens between two decode steps
  /// Pages of everything and the checkpoints' own bytes; above it checkpoints are forgotten. 0 = no checkpoints.
  std::size_t cache_bytes = std::size_t{1} << 30U;
};

struct SchedulerStatus {
  std::size_t running = 0;  ///< requests that hold slots
  std::size_t waiting = 0;
  std::vector<bool> slots;  ///< [parallel] whether each answers
  std::size_t checkpoints = 0;
  PoolStats pool;
  std::uint64_t requests = 0;
  std::uint64_t rejected = 0;
  std::uint64_t cancelled = 0;
  std::uint64_t failed = 0;
  std::uint64_t prompt_tokens = 0;  ///< computed, not those taken from checkpoints
  std::uint64_t cached_tokens = 0;
  std::uint64_t generated_tokens = 0;
  double prefill_seconds = 0.0;
  double decode_seconds = 0.0;
};

/// All public functions may be called from any thread.
class Scheduler {
 public:
  Scheduler(Model model, const EngineSettings& engine_settings, Policy policy, const SchedulerSettings& settings);
  /// Cancels what runs. Generations stay valid.
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  const Model& model() const { return model_; }
  const Policy& policy() const { return policy_; }
  const SchedulerSettings& settings() const { return settings_; }

  /// Throws Overloaded, ShuttingDown, InvalidArgument (nothing to read, more choices than slots), ContextFull with both
  /// numbers.
  std::shared_ptr<Generation> submit(GenerationRequest request);
  /// Runs `work` on the engine's thread between two steps and waits for it; throws what it throws, and ShuttingDown
  /// when the scheduler ends first.
  void on_engine(const std::function<void(const std::shared_ptr<Engine>&)>& work);
  /// The same with what the slots and the store keep.
  void on_slots(const std::function<void(SlotTable&, CheckpointStore&)>& work);
  /// Makes a state one that later requests may go on from, and the one that `slot` keeps. On the engine's thread only.
  void keep_in_slot(std::size_t slot, const CheckpointStore::Pointer& state);
  /// Forgets the checkpoints that go on from this document.
  void forget(const std::string& base);
  /// Refuses new requests; waits until all that run are done, or cancels them after `grace`.
  void drain(std::chrono::milliseconds grace);
  SchedulerStatus status() const;

 private:
  struct Job;
  using Clock = std::chrono::steady_clock;

  void run();
  void run_tasks();
  void admit();
  bool start_next();
  void start(Job& job);
  void sweep();
  void prefill_step();
  void end_prompt(Job& job, std::span<const float> logits);
  void begin_answers(Job& job, const std::vector<float>& logits);
  void decode_step();
  void take(Job& job, Choice& choice, std::span<const float> logits);
  void finish_if_done(Job& job);
  void finish(Job& job);
  void fail(Job& job, std::exception_ptr error);
  void fail_all(const std::exception_ptr& error);
  void keep(Job& job, const KvSequence& sequence, const std::vector<Token>& answer, std::vector<float> logits);
  void trim_cache();
  void compress_if_needed(KvSequence& sequence, std::int64_t tokens) const;
  bool drops_rows(std::int64_t tokens) const;
  /// Runs a batch; makes room by forgetting checkpoints where there is none. `error` is set when it failed.
  std::span<const float> decode(std::span<const BatchItem> items, std::exception_ptr& error);
  void publish();

  Model model_;
  Policy policy_;
  SchedulerSettings settings_;
  std::shared_ptr<Engine> engine_;
  CheckpointStore store_;
  SlotTable slots_;
  std::vector<std::unique_ptr<Job>> jobs_;  // in the order of their start
  std::size_t next_prefill_ = 0;

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable settled_;
  std::deque<std::unique_ptr<Job>> queue_;
  std::deque<std::function<void(bool)>> tasks_;  // false: the scheduler ends
  bool stopping_ = false;
  bool draining_ = false;
  bool cancel_all_ = false;
  SchedulerStatus status_;
  SchedulerStatus counted_;  // of the engine's thread
  std::thread thread_;
};

}  // namespace razorkv::server
