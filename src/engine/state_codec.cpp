#include "engine/state_codec.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "cache/kv_sequence_codec.h"
#include "razorkv/error.h"

namespace razorkv {
namespace {

constexpr std::string_view kMagic = "RAZORKVS";
constexpr std::uint32_t kVersion = 1;

const char* type_name(RowType type) { return type == RowType::f32 ? "f32" : "f16"; }

std::string rule_text(const HeadRule& rule) {
  if (rule.everything) return "everything";
  const std::string divisor = rule.window_divisor > 0 ? fmt::format(" or n/{}", rule.window_divisor) : "";
  return fmt::format("{} sinks and a window of {}{}, {} compensation token", rule.sinks, rule.window_floor, divisor,
                     rule.compensate ? "with" : "without");
}

void write_rule(BinaryWriter& out, const HeadRule& rule) {
  out.u8(rule.everything ? 1 : 0);
  out.i64(rule.sinks);
  out.i64(rule.window_floor);
  out.i64(rule.window_divisor);
  out.u8(rule.compensate ? 1 : 0);
}

HeadRule read_rule(BinaryReader& in) {
  HeadRule rule;
  rule.everything = in.boolean("a head's rule (everything)");
  rule.sinks = in.i64("a head's rule (sinks)");
  rule.window_floor = in.i64("a head's rule (window)");
  rule.window_divisor = in.i64("a head's rule (divisor)");
  rule.compensate = in.boolean("a head's rule (compensation)");
  return rule;
}

void check_model(BinaryReader& in, const StateModel& model, const KvSequence& fresh) {
  const std::string fingerprint = in.text("model fingerprint");
  if (fingerprint != model.fingerprint) {
    in.refuse(
        fmt::format("made with another model: expected the fingerprint {}, found {}", model.fingerprint, fingerprint));
  }
  const RowFormat& format = fresh.format();
  const std::uint8_t type = in.u8("row type");
  if (type > static_cast<std::uint8_t>(RowType::f16)) {
    in.refuse(fmt::format("expected row type 0 (f32) or 1 (f16), found {}", type));
  }
  if (static_cast<RowType>(type) != format.type) {
    in.refuse(fmt::format("expected cache rows of type {}, found {}; open the session with that type",
                          type_name(format.type), type_name(static_cast<RowType>(type))));
  }
  in.expect("head width", format.width, in.i64("head width"));
  in.expect("layers:", fresh.layer_count(), in.i64("layers"));
  for (std::int64_t l = 0; l < fresh.layer_count(); ++l) {
    in.expect(fmt::format("KV heads in layer {}:", l), std::ssize(fresh.layer(l)), in.i64("KV heads of a layer"));
  }
}

/// Refuses a policy other than that of `fresh`.
void check_policy(const BinaryReader& in, const SavedPolicy& saved, const KvSequence& fresh,
                  std::string_view policy_description) {
  std::string difference;
  if (saved.policy.streaming != fresh.policy().streaming) {
    difference = fmt::format("expected {} prefill, found {}", fresh.policy().streaming ? "streaming" : "exact",
                             saved.policy.streaming ? "streaming" : "exact");
  }
  for (std::int64_t l = 0; l < fresh.layer_count(); ++l) {
    for (std::size_t h = 0; h < fresh.layer(l).size(); ++h) {
      const HeadRule& expected = fresh.layer(l)[h].rule();
      const HeadRule& found = saved.policy.rules[static_cast<std::size_t>(l)][h];
      if (found == expected || !difference.empty()) continue;
      difference =
          fmt::format("layer {}, KV head {}: expected {}, found {}", l, h, rule_text(expected), rule_text(found));
    }
  }
  if (!difference.empty()) {
    in.refuse(
        fmt::format("made under another policy: expected {} ({}), found {} ({}); {}. Open the session with the "
                    "policy that the state was saved under",
                    fresh.policy().name, policy_description, saved.policy.name, saved.description, difference));
  }
}

std::vector<Token> read_tokens(BinaryReader& in, std::int64_t vocabulary) {
  std::vector<Token> tokens = in.array<Token>(in.u64("number of tokens"), "tokens");
  for (const Token token : tokens) {
    if (token < 0 || token >= vocabulary) {
      in.refuse(fmt::format("expected tokens from 0 to {}, found {}", vocabulary - 1, token));
    }
  }
  return tokens;
}

std::vector<float> read_logits(BinaryReader& in, std::int64_t vocabulary) {
  const std::uint64_t count = in.u64("number of logits");
  if (count != 0 && count != static_cast<std::uint64_t>(vocabulary)) {
    in.refuse(fmt::format("expected {} logits or none, found {}", vocabulary, count));
  }
  return in.array<float>(count, "logits");
}

}  // namespace

void encode_state(BinaryWriter& out, const StateModel& model, const KvSequence& sequence, const SavedState& state,
                  std::uint64_t length) {
  if (sequence.compressed() && sequence.policy().selects_rows()) {
    throw InvalidArgument(
        fmt::format("a context compressed by {} cannot be saved: state files hold heads with a window "
                    "or everything, not a choice of rows. Save it before it is compressed",
                    sequence.policy().name));
  }
  out.bytes(std::as_bytes(std::span(kMagic)));
  out.u32(kVersion);
  out.u64(length);

  out.text(model.fingerprint);
  out.u8(static_cast<std::uint8_t>(sequence.format().type));
  out.i64(sequence.format().width);
  out.i64(sequence.layer_count());
  for (std::int64_t l = 0; l < sequence.layer_count(); ++l) out.i64(std::ssize(sequence.layer(l)));

  out.text(sequence.policy().name);
  out.u8(sequence.policy().streaming ? 1 : 0);
  out.text(state.policy_description);
  for (std::int64_t l = 0; l < sequence.layer_count(); ++l) {
    for (const HeadRows& head : sequence.layer(l)) write_rule(out, head.rule());
  }

  out.u64(state.tokens.size());
  out.array<Token>(state.tokens);
  out.u64(state.logits.size());
  out.array<float>(state.logits);
  KvSequenceCodec::write(out, sequence);
}

void check_state_preamble(BinaryReader& in, std::uint64_t file_bytes) {
  std::array<char, kMagic.size()> magic{};
  if (in.remaining() >= magic.size()) in.bytes(std::as_writable_bytes(std::span(magic)), "magic");
  if (std::string_view(magic.data(), magic.size()) != kMagic) {
    in.refuse(fmt::format("not a saved razorkv state: expected \"{}\" at its start", kMagic));
  }
  const std::uint32_t version = in.u32("format version");
  if (version != kVersion) {
    in.refuse(fmt::format("expected format version {}, found the {} version {}; {}", kVersion,
                          version > kVersion ? "newer" : "older", version,
                          version > kVersion ? "use a newer razorkv" : "make the state again"));
  }
  const std::uint64_t length = in.u64("length");
  if (length > file_bytes) in.refuse(fmt::format("cut short: expected {} bytes, found {}", length, file_bytes));
  if (length < file_bytes) {
    in.refuse(fmt::format("corrupt: expected {} bytes, found {} more", length, file_bytes - length));
  }
}

SavedPolicy decode_policy(BinaryReader& in, const StateModel& model, const KvSequence& fresh) {
  check_model(in, model, fresh);
  SavedPolicy saved;
  saved.policy.name = in.text("policy name");
  saved.policy.streaming = in.boolean("streaming flag");
  saved.description = in.text("policy description");
  for (std::int64_t l = 0; l < fresh.layer_count(); ++l) {
    std::vector<HeadRule>& rules = saved.policy.rules.emplace_back();
    for (std::size_t h = 0; h < fresh.layer(l).size(); ++h) rules.push_back(read_rule(in));
  }
  return saved;
}

LoadedState decode_content(BinaryReader& in, const StateModel& model, KvSequence fresh, PagePool& pool,
                           std::string policy_description) {
  SavedState state;
  state.policy_description = std::move(policy_description);
  state.tokens = read_tokens(in, model.vocabulary);
  state.logits = read_logits(in, model.vocabulary);
  KvSequence sequence = KvSequenceCodec::read(in, std::move(fresh), pool, std::ssize(state.tokens));
  in.expect("unread bytes at the end:", 0, static_cast<std::int64_t>(in.remaining()));
  return {std::move(sequence), std::move(state)};
}

LoadedState decode_state(BinaryReader& in, const StateModel& model, KvSequence fresh, PagePool& pool,
                         std::string_view policy_description) {
  SavedPolicy saved = decode_policy(in, model, fresh);
  check_policy(in, saved, fresh, policy_description);
  return decode_content(in, model, std::move(fresh), pool, std::move(saved.description));
}

}  // namespace razorkv
