// The content of a state file, whose checksum anyone can make fit. Errors are fine, crashes are not, and what was read
// must be written again as the same bytes.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "cache/kv_sequence_codec.h"
#include "engine/state_codec.h"
#include "razorkv/error.h"

namespace {

using namespace razorkv;

constexpr std::int64_t kSliding[] = {0, 0, 6};

KvSequence fresh_sequence(bool streaming) {
  KvPolicy policy{"razor", streaming, {}};
  policy.rules = {{HeadRule::all(), {false, 2, 4, 3, true}}, {{false, 1, 66, 0, false}}, {HeadRule::all()}};
  return {{RowType::f16, 2}, std::make_shared<const KvPolicy>(policy), kSliding};
}

/// `head`, then `content`, then as many bytes as a checksum has.
std::vector<std::byte> put_together(std::vector<std::byte> head, std::span<const std::byte> content) {
  head.insert(head.end(), content.begin(), content.end());
  head.resize(head.size() + BinaryWriter::kChecksumBytes);
  return head;
}

BinaryReader reader(std::span<const std::byte> bytes) {
  return {"input", bytes.size(), [bytes](std::span<std::byte> out) mutable {
            const std::size_t n = std::min(out.size(), bytes.size());
            std::copy_n(bytes.begin(), n, out.begin());
            bytes = bytes.subspan(n);
            return n;
          }};
}

/// Everything before the tokens, which an input would hardly guess.
std::vector<std::byte> start_of_file(const StateModel& model, const KvSequence& empty) {
  std::vector<std::byte> out;
  BinaryWriter writer([&out](std::span<const std::byte> bytes) { out.insert(out.end(), bytes.begin(), bytes.end()); });
  encode_state(writer, model, empty, {}, 0);
  writer.finish();
  BinaryWriter tail;  // what an empty state has behind its start
  tail.u64(0);
  tail.u64(0);
  KvSequenceCodec::write(tail, empty);
  tail.finish();
  out.resize(out.size() - tail.size());
  return out;
}

void read_tail(std::span<const std::byte> content, bool streaming) {
  const StateModel model{"fingerprint", 16};
  PagePool pool(RowFormat{RowType::f16, 2}.page_bytes(), 0);
  const std::vector<std::byte> start = start_of_file(model, fresh_sequence(streaming));
  std::vector<std::byte> file = put_together(start, content);
  const std::uint64_t length = file.size();
  std::memcpy(file.data() + 12, &length, sizeof length);
  BinaryReader in = reader(file);
  check_state_preamble(in, file.size());
  const LoadedState loaded = decode_state(in, model, fresh_sequence(streaming), pool, "");

  std::vector<std::byte> again;
  BinaryWriter writer([&](std::span<const std::byte> bytes) { again.insert(again.end(), bytes.begin(), bytes.end()); });
  encode_state(writer, model, loaded.sequence, loaded.state, length);
  writer.finish();
  if (again.size() != file.size()) __builtin_trap();
  if (!std::equal(again.begin(), again.end() - BinaryWriter::kChecksumBytes, file.begin())) __builtin_trap();
}

void read_file(std::span<const std::byte> file) {
  BinaryReader in = reader(file);
  check_state_preamble(in, file.size());
  PagePool pool(RowFormat{RowType::f16, 2}.page_bytes(), 0);
  (void)decode_state(in, {"", 16}, fresh_sequence(false), pool, "");
}

}  // namespace

/// The first byte chooses: 0 and 1 give what follows a valid start (exact, streaming), others a whole file.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const auto rest = std::as_bytes(std::span(data + 1, size - 1));
  try {
    if (data[0] < 2) {
      read_tail(rest, data[0] == 1);
    } else {
      read_file(rest);
    }
  } catch (const Error&) {
  }
  return 0;
}
