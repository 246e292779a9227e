#include "cache/kv_sequence_codec.h"

#include "cache/head_rows_codec.h"

namespace razorkv {

void KvSequenceCodec::write(BinaryWriter& out, const KvSequence& sequence) {
  out.u8(sequence.compressed_ ? 1 : 0);
  out.i64(sequence.tokens_);
  for (const auto& heads : sequence.layers_) {
    for (const HeadRows& head : heads) HeadRowsCodec::write(out, head);
  }
}

KvSequence KvSequenceCodec::read(BinaryReader& in, KvSequence fresh, PagePool& pool, std::int64_t tokens) {
  const bool compressed = in.boolean("whether the context is compressed");
  if (fresh.compressed_ && !compressed) in.refuse("expected a compressed context (streaming policy), found another");
  if (compressed) fresh.compress();
  in.expect("tokens in the cache:", tokens, in.i64("tokens in the cache"));
  for (auto& heads : fresh.layers_) {
    for (HeadRows& head : heads) HeadRowsCodec::read(in, head, pool, tokens);
  }
  fresh.tokens_ = tokens;
  return fresh;
}

}  // namespace razorkv
