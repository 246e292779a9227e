// The KV cache of one sequence: a HeadRows per (layer, KV head), and how many tokens it has seen.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "cache/head_rows.h"
#include "cache/kv_policy.h"

namespace razorkv {

/// Bytes that one sequence holds. Pages shared with other sequences count in each.
struct KvUsage {
  std::int64_t tokens = 0;          ///< context so far
  std::int64_t rows = 0;            ///< rows held, all heads
  std::size_t row_bytes = 0;        ///< bytes of those rows
  std::size_t allocated_bytes = 0;  ///< as allocated, page slack included
  std::size_t uncompressed_bytes =
      0;  ///< rows of the whole context in every head that is not the model's sliding window
};

/// Rows to keep, [layer][KV head], positions rising. Unread for heads that have a window.
using RowChoice = std::vector<std::vector<std::vector<std::int64_t>>>;

/// Copying is a snapshot and costs page references only; both copies go on independently.
class KvSequence {
 public:
  /// `sliding_window[layer]` > 0 marks the model's own sliding-window layers: their heads keep that window whatever
  /// the policy says. Throws InvalidArgument when the policy's shape does not fit.
  KvSequence(const RowFormat& format, std::shared_ptr<const KvPolicy> policy,
             std::span<const std::int64_t> sliding_window);

  std::int64_t tokens() const noexcept { return tokens_; }
  bool compressed() const noexcept { return compressed_; }
  const KvPolicy& policy() const noexcept { return *policy_; }
  const std::shared_ptr<const KvPolicy>& shared_policy() const noexcept { return policy_; }
  const RowFormat& format() const noexcept { return format_; }
  std::int64_t layer_count() const noexcept { return static_cast<std::int64_t>(layers_.size()); }
  std::span<HeadRows> layer(std::int64_t index) noexcept { return layers_[static_cast<std::size_t>(index)]; }
  std::span<const HeadRows> layer(std::int64_t index) const noexcept {
    return layers_[static_cast<std::size_t>(index)];
  }

  /// Room for `extra` more tokens in every head. On an exception nothing is held that was not held before.
  void reserve(PagePool& pool, std::int64_t extra);
  /// Drops what reserve() added and no commit() used.
  void release_reserved() noexcept;
  void commit(std::int64_t rows) noexcept;
  /// Applies the policy to what is held and to all that follows. Throws InvalidArgument where the policy selects rows.
  void compress();
  /// The same for a policy that selects rows: heads that keep everything keep the rows chosen for them, and all that
  /// follow. Throws InvalidArgument where `choice` does not fit the heads; OutOfMemory. Then nothing changed.
  void compress(const RowChoice& choice);

  /// A copy that follows another policy; shares all pages. One prefill serves many policies that way. Throws
  /// InvalidArgument when this sequence is compressed or the policy's shape does not fit, and for a streaming policy
  /// on a sequence that holds rows.
  KvSequence with_policy(std::shared_ptr<const KvPolicy> policy) const;

  KvUsage usage() const noexcept;

 private:
  friend class KvSequenceCodec;  // save and load
  RowFormat format_;
  std::shared_ptr<const KvPolicy> policy_;
  std::vector<std::vector<HeadRows>> layers_;
  std::vector<std::int64_t> sliding_window_;
  std::int64_t tokens_ = 0;
  bool compressed_ = false;
};

}  // namespace razorkv
