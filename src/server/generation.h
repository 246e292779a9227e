// One request to the scheduler and what comes back from it, token by token.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "cache/kv_sequence.h"
#include "engine/sampler.h"
#include "razorkv/error.h"
#include "razorkv/types.h"
#include "server/checkpoint_store.h"

namespace razorkv::server {

/// The queue is full: try again later.
class Overloaded : public Error {
  using Error::Error;
};

/// The server is shutting down.
class ShuttingDown : public Error {
  using Error::Error;
};

/// The request took longer than it may.
class TimedOut : public Error {
  using Error::Error;
};

struct GenerationRequest {
  std::vector<Token> prompt;  ///< the whole context to go on from; at least one token
  /// Tokens and state that `prompt` begins with (a document), or null.
  std::shared_ptr<const Checkpoint> start;
  std::string base;           ///< id of that document; only checkpoints of the same one are reused
  bool conversation = false;  ///< the prompt is a chat: it goes on from compressed checkpoints of its earlier turns
  bool reuse = true;          ///< use and make checkpoints
  /// One per choice, each with the prompt accepted. None: the prompt is read only, and the state kept in the result.
  std::vector<Sampler> samplers;
  std::vector<std::string> stops;
  std::int64_t max_tokens = 0;  ///< per choice; 0 = until the model or the context ends it
  bool logprobs = false;
  std::size_t top_logprobs = 0;
  std::string client;  ///< the queue is fair between clients
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
};

enum class FinishReason : std::uint8_t { stop, length };

struct TokenScore {
  Token token = 0;
  float logprob = 0.0F;  ///< natural logarithm, of the model's own distribution
};

struct ScoredToken {
  TokenScore chosen;
  std::vector<TokenScore> top;  ///< the most likely first
};

struct GenerationDelta {
  std::size_t choice = 0;
  std::string text;                 ///< whole UTF-8 characters; nothing of a stop string
  std::vector<ScoredToken> tokens;  ///< those whose text has been given out, when log-probabilities were asked for
  std::optional<FinishReason> finish;
};

struct GenerationSummary {
  std::int64_t prompt_tokens = 0;
  std::int64_t cached_tokens = 0;  ///< of these, taken from a checkpoint
  std::int64_t prefilled_tokens = 0;
  std::int64_t generated_tokens = 0;  ///< all choices
  double queue_seconds = 0.0;
  double prefill_seconds = 0.0;
  double decode_seconds = 0.0;
  KvUsage kv;  ///< of the first choice, when it ended
  bool compressed = false;
  std::shared_ptr<const Checkpoint> state;  ///< of a request without choices
};

/// Shared by the thread that waits for the answer and the engine's.
class Generation {
 public:
  enum class Wait : std::uint8_t { delta, progress, finished, timeout };

  /// Waits for something new: a delta (put into `delta`), more of the prompt read, the end. Throws what went wrong.
  Wait next(GenerationDelta& delta, std::chrono::milliseconds limit);
  void cancel() noexcept;
  bool cancelled() const;
  std::int64_t prefilled() const;
  /// Once finished.
  GenerationSummary summary() const;

  /// For the scheduler.
  void push(GenerationDelta delta);
  void advance(std::int64_t prefilled);
  void finish(GenerationSummary summary);
  void fail(std::exception_ptr error);

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<GenerationDelta> deltas_;
  std::int64_t prefilled_ = 0;
  std::int64_t seen_ = 0;
  bool cancelled_ = false;
  bool finished_ = false;
  std::exception_ptr error_;
  GenerationSummary summary_;
};

}  // namespace razorkv::server
