// libllama as a peer to measure against: same file, same threads, its threads kept between calls.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "razorkv/types.h"

namespace razorkv::bench {

struct LlamaPeerOptions {
  int threads = 1;
  std::int64_t context = 1024;  ///< tokens
  std::int64_t micro_batch = 512;
};

/// One model with two contexts, f16 KV: flash attention off and on.
class LlamaPeer {
 public:
  /// Throws Error where libllama cannot load the file or make a context.
  LlamaPeer(const std::string& path, const LlamaPeerOptions& options);
  ~LlamaPeer();
  LlamaPeer(const LlamaPeer&) = delete;
  LlamaPeer& operator=(const LlamaPeer&) = delete;

  /// Forgets the context's tokens.
  void clear(bool flash);
  /// Forgets the tokens behind the first `length`. Throws Error where the model's memory cannot do that.
  void truncate(bool flash, std::int64_t length);
  /// Appends tokens; logits [vocabulary] of the last, valid until the next call.
  std::span<const float> feed(bool flash, std::span<const Token> tokens);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace razorkv::bench
