// Log-probabilities of a base model on disk, in the format of llama.cpp's --kl-divergence-base:
//
//   "_logits_", u32 context, i32 vocabulary, i32 chunks, i32 tokens [chunks * context]
//   per chunk and scored token a record of 2 * ((vocabulary + 1) / 2) + 4 u16:
//     f32 scale, f32 smallest, u16 q [vocabulary], one u16 unused where the vocabulary is odd
//   log p(i) = scale * q(i) + smallest; what lies 16 below the largest logit and more is q = 0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/atomic_file.h"
#include "base/input_file.h"
#include "eval/perplexity/log_softmax.h"
#include "eval/perplexity/text_chunks.h"

namespace razorkv {

/// The u16 of one record. `logits` [vocabulary].
std::vector<std::uint16_t> encode_log_probabilities(std::span<const float> logits);

/// log p [vocabulary] of a record.
void decode_log_probabilities(std::span<const std::uint16_t> record, std::span<float> out);

class KldBaseWriter {
 public:
  /// Throws FileError.
  KldBaseWriter(const std::string& path, const TextChunks& chunks, std::int64_t vocabulary);
  /// The next record, in order of chunks and tokens. Throws FileError.
  void add(std::span<const float> logits);
  /// Puts the file in its place. Throws FileError; InvalidArgument when records are missing.
  void commit();

 private:
  AtomicFile file_;
  std::int64_t missing_;  // records
};

class KldBaseReader {
 public:
  /// Throws FileError for a file that is not one of these, or whose size is not what its header says.
  explicit KldBaseReader(const std::string& path);

  std::int64_t vocabulary() const { return vocabulary_; }
  /// The chunks of the file; `bos` is -1 there.
  const TextChunks& chunks() const { return chunks_; }
  /// Log-probabilities of the next record into `out` [vocabulary]. Throws FileError.
  LogProbabilities next(std::span<float> out);

 private:
  void read(std::span<std::byte> out);

  std::string path_;
  InputFile file_;
  TextChunks chunks_;
  std::int64_t vocabulary_ = 0;
  std::vector<std::uint16_t> record_;
};

}  // namespace razorkv
