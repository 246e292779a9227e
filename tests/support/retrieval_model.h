// The synthetic retrieval model: a hand-set two-layer decoder that answers key -> value questions at any length, and
// questions for it. Evaluation, section 8.
//
// Layer 1, KV head 0 holds the induction head and is the only one that must see everything; layer 0 holds offset heads
// (attend to the token j before), layer 1 KV head 1 the mean head (or, in the echo variant, an echo head).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/config.h"
#include "support/tiny_gguf.h"

namespace razorkv::test {

struct RetrievalModelOptions {
  bool echo = false;                      ///< the echo variant, for head identification
  RopeKind layout = RopeKind::adjacent;   ///< halves: the same model under the architecture qwen2
  ggml_type weight_type = GGML_TYPE_F32;  ///< of matrices
  std::int64_t context = 1 << 21;
  std::uint64_t seed = 1;  ///< of the token codes
};

inline constexpr std::int32_t kRetrievalBos = 0;  ///< also the answer "not found"
inline constexpr std::int32_t kRetrievalVocabulary = 512;

/// The model with a vocabulary whose BOS is token 0 (a control token); the others are plain words and bytes.
TinyGguf retrieval_model(const RetrievalModelOptions& options = {});

struct Needle {
  std::int64_t position = 0;         ///< of the key in the context
  std::vector<std::int32_t> tokens;  ///< key and four answer tokens
  std::int32_t key() const { return tokens.front(); }
  std::vector<std::int32_t> answer() const { return {tokens.begin() + 1, tokens.end()}; }
};

struct RetrievalTask {
  std::vector<std::int32_t> context;      ///< BOS, filler (ids 1 to 63), needles
  std::vector<Needle> needles;            ///< in order of position
  std::vector<std::int32_t> absent_keys;  ///< ids of needles that do not occur in the context
};

/// `length` tokens with `needles` needles (at most 89) at random places that do not overlap.
RetrievalTask retrieval_task(std::int64_t length, std::int64_t needles, std::uint64_t seed);

/// The same with one needle per given key position (ascending, at least 5 apart, at least 1).
RetrievalTask retrieval_task_at(std::int64_t length, const std::vector<std::int64_t>& positions, std::uint64_t seed);

}  // namespace razorkv::test
