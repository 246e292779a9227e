#include "engine/state_file.h"

#include <exception>
#include <functional>
#include <new>
#include <optional>
#include <utility>

#include "base/atomic_file.h"
#include "base/input_file.h"
#include "engine/state_codec.h"
#include "razorkv/error.h"

namespace razorkv {
namespace {

StateModel state_model(const Engine& engine) {
  return {engine.model().fingerprint(), engine.model().config().vocabulary};
}

/// What `decode` makes of the file: one pass over what may be hundreds of megabytes; what is wrong with the content of
/// a corrupt file says nothing, so the checksum has the first word.
LoadedState checked(const std::string& path, const std::function<LoadedState(BinaryReader&)>& decode) {
  InputFile file(path);
  BinaryReader in(path, file.size(), [&file](std::span<std::byte> out) { return file.read(out); });
  check_state_preamble(in, file.size());
  std::optional<LoadedState> decoded;
  std::exception_ptr refusal;
  try {
    decoded.emplace(decode(in));
  } catch (const Error&) {
    refusal = std::current_exception();
  }
  in.verify_checksum();
  if (refusal) std::rethrow_exception(refusal);
  return std::move(*decoded);
}

}  // namespace

void write_state(const std::string& path, const Engine& engine, const KvSequence& sequence, const SavedState& state) {
  const StateModel model = state_model(engine);
  if (std::ssize(state.tokens) != sequence.tokens()) {
    throw InvalidArgument("a state to save needs the " + std::to_string(sequence.tokens()) +
                          " tokens of its sequence, found " + std::to_string(state.tokens.size()));
  }
  if (!state.logits.empty() && std::ssize(state.logits) != model.vocabulary) {
    throw InvalidArgument("a state to save needs " + std::to_string(model.vocabulary) + " logits or none, found " +
                          std::to_string(state.logits.size()));
  }
  BinaryWriter counter;
  encode_state(counter, model, sequence, state, 0);
  counter.finish();

  AtomicFile file(path);
  BinaryWriter out([&file](std::span<const std::byte> bytes) { file.write(bytes); });
  encode_state(out, model, sequence, state, counter.size());
  out.finish();
  file.commit();
}

LoadedState read_state(const std::string& path, Engine& engine, std::shared_ptr<const KvPolicy> policy,
                       std::string_view policy_description) try {
  return checked(path, [&](BinaryReader& in) {
    const StateModel model = state_model(engine);
    if (policy) {
      return decode_state(in, model, engine.new_sequence(std::move(policy)), engine.pool(), policy_description);
    }
    SavedPolicy saved = decode_policy(in, model, engine.new_sequence(engine.full_policy()));
    return decode_content(in, model, engine.new_sequence(std::make_shared<const KvPolicy>(std::move(saved.policy))),
                          engine.pool(), std::move(saved.description));
  });
} catch (const std::bad_alloc&) {
  throw OutOfMemory(path + ": the system gave no memory for the saved state");
}

}  // namespace razorkv
