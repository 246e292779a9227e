// A sequence's rows in a state file: u8 compressed, i64 tokens, then every head (head_rows_codec.h), layer by layer.
#pragma once

#include "base/binary_reader.h"
#include "base/binary_writer.h"
#include "cache/kv_sequence.h"

namespace razorkv {

class KvSequenceCodec {
 public:
  static void write(BinaryWriter& out, const KvSequence& sequence);

  /// `fresh`: an empty sequence under the rules that the file was made under; pages come from `pool`.
  /// Throws FileError where the file does not fit them or has another number of tokens, OutOfBudget, OutOfMemory.
  static KvSequence read(BinaryReader& in, KvSequence fresh, PagePool& pool, std::int64_t tokens);
};

}  // namespace razorkv
