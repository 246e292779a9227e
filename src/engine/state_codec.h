// The content of a state file. All numbers little-endian; texts are a u32 length and bytes.
//
//   "RAZORKVS"            8 bytes
//   u32 version           of this format
//   u64 length            bytes of the whole file, checksum included
//   text fingerprint      of the model
//   u8  row type          0 = f32, 1 = f16
//   i64 head width, i64 layers, per layer i64 KV heads
//   text policy name, u8 streaming, text description
//   per layer and KV head its rule: u8 everything, i64 sinks, i64 window floor, i64 window divisor, u8 compensate
//   u64 n, n i32 tokens
//   u64 n, n f32 logits   n = 0 or the vocabulary
//   the sequence          see cache/kv_sequence_codec.h
//   SHA-256               64 hexadecimal digits over all bytes before
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/binary_reader.h"
#include "base/binary_writer.h"
#include "cache/kv_sequence.h"
#include "cache/page_pool.h"
#include "engine/state_file.h"

namespace razorkv {

/// What a state belongs to, beside the shape and the rules of its sequence.
struct StateModel {
  std::string fingerprint;
  std::int64_t vocabulary = 0;
};

/// Everything up to the checksum. `length` is the file's; any number while the writer only counts. Throws
/// InvalidArgument for a compressed sequence whose policy selects rows.
void encode_state(BinaryWriter& out, const StateModel& model, const KvSequence& sequence, const SavedState& state,
                  std::uint64_t length);

/// Magic, version and length, before anything else. Throws FileError.
void check_state_preamble(BinaryReader& in, std::uint64_t file_bytes);

/// What a state was saved under.
struct SavedPolicy {
  KvPolicy policy;
  std::string description;  ///< for people
};

/// What follows the preamble, up to the tokens. `fresh`: a sequence of the model under any policy. Throws FileError for
/// another model, row type or shape.
SavedPolicy decode_policy(BinaryReader& in, const StateModel& model, const KvSequence& fresh);

/// What follows the policy, up to the checksum. `fresh`: an empty sequence of the model under it. Throws FileError,
/// OutOfBudget, OutOfMemory.
LoadedState decode_content(BinaryReader& in, const StateModel& model, KvSequence fresh, PagePool& pool,
                           std::string policy_description);

/// Both: what follows the preamble, up to the checksum. Throws FileError also for a policy other than that of `fresh`,
/// described by `policy_description`.
LoadedState decode_state(BinaryReader& in, const StateModel& model, KvSequence fresh, PagePool& pool,
                         std::string_view policy_description);

}  // namespace razorkv
