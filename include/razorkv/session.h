// One conversation with a model: feed tokens, get logits, compress, go back.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "razorkv/model.h"
#include "razorkv/policy.h"
#include "razorkv/types.h"

namespace razorkv {

struct SessionOptions {
  std::int64_t context = 0;  ///< tokens at most; 0 = the model's own length
  int threads = 0;           ///< decode; 0 = all processors that this process may use
  int threads_batch = 0;     ///< prefill; 0 = as `threads`
  std::int64_t micro_batch = 512;
  KvType kv_type = KvType::f16;
  std::size_t kv_budget_bytes = 0;  ///< hard limit of the page pool; 0 = none
};

struct SessionStatistics {
  std::int64_t tokens = 0;          ///< context so far
  std::int64_t prefill_tokens = 0;  ///< fed in batches of two and more
  double prefill_seconds = 0.0;
  std::int64_t decode_tokens = 0;  ///< fed one at a time
  double decode_seconds = 0.0;
  double compress_seconds = 0.0;
  std::size_t kv_bytes = 0;               ///< allocated by this session's cache
  std::size_t kv_row_bytes = 0;           ///< of these, bytes in rows that are in use; the rest is page slack
  std::size_t kv_peak_bytes = 0;          ///< most that its pool ever held
  std::size_t kv_uncompressed_bytes = 0;  ///< rows of the whole context
  std::size_t compute_bytes = 0;          ///< activations and scratch
};

/// The state of a session at one moment, for that session only. Costs references to pages, not copies.
class Snapshot {
 public:
  std::int64_t tokens() const;
  struct Impl;
  explicit Snapshot(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  const std::shared_ptr<const Impl>& impl() const { return impl_; }

 private:
  std::shared_ptr<const Impl> impl_;
};

/// Not thread-safe. After a call that throws, the session is as it was before the call.
class Session {
 public:
  /// Throws InvalidArgument, OutOfMemory.
  Session(const Model& model, const SessionOptions& options);
  Session(Model model, const SessionOptions& options, const Policy& policy);
  ~Session();
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;

  const Model& model() const;
  const SessionOptions& options() const;  ///< with the defaults filled in
  const Policy& policy() const;

  /// Changes the policy of a session that is not compressed yet. A snapshot goes back to the policy it was made under.
  /// Throws InvalidArgument when it is compressed, or for streaming prefill when tokens have been fed.
  void set_policy(const Policy& policy);

  /// Appends tokens. Throws ContextFull (with both numbers), InvalidArgument, OutOfBudget, OutOfMemory, Cancelled.
  void feed(std::span<const Token> tokens, const Progress& progress = {});
  /// Logits [vocabulary] that follow the last token fed. Empty before the first feed() and after restore() to the
  /// start.
  std::span<const float> logits() const;

  /// Ends the prompt: applies the policy to what is held and to all that follows, and gives the memory back.
  void compress();
  bool compressed() const;

  Snapshot snapshot() const;
  /// Goes back to a snapshot of this session. Throws InvalidArgument for another session's.
  void restore(const Snapshot& snapshot);
  /// Forgets everything.
  void clear();

  /// Writes the state to `path` through a temporary file. Throws FileError; then an older file is still whole.
  void save(const std::string& path) const;
  /// Throws FileError for a file that is cut, corrupt, of another model, row type, policy or version.
  void load(const std::string& path);
  /// The same for a file of any policy, which becomes the session's.
  void load_with_policy(const std::string& path);

  /// True makes a running feed() stop with Cancelled. May be set from another thread or a signal handler.
  std::atomic<bool>& cancel_flag();
  SessionStatistics statistics() const;

  struct Impl;

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace razorkv
