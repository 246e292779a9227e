// A sequence's compressed state on disk: rows, sums, counts, positions, policy, and what they belong to.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cache/kv_sequence.h"
#include "engine/engine.h"

namespace razorkv {

/// What a state belongs to and what goes on from it.
struct SavedState {
  std::vector<Token> tokens;       ///< every token fed, in order; size() = sequence.tokens()
  std::vector<float> logits;       ///< [vocabulary] after the last token; may be empty
  std::string policy_description;  ///< for people; shown when a session has another policy
};

/// Written to a temporary file beside `path`, flushed and renamed: a killed or failed save leaves the old file whole.
/// The bytes depend on nothing but the arguments. Memory: a buffer of fixed size. Throws FileError; InvalidArgument
/// when `state` is not of this sequence and model.
void write_state(const std::string& path, const Engine& engine, const KvSequence& sequence, const SavedState& state);

struct LoadedState {
  KvSequence sequence;
  SavedState state;
};

/// Reads a state into new pages of the engine's pool; it goes on bit for bit as the saved one would have. `policy` is
/// the session's own, `policy_description` its words for people: a file made under other rules is refused; null: the
/// sequence follows the policy that the file names. Throws
/// FileError saying what was expected and found (cut, corrupt, another version, model, row type or policy),
/// OutOfBudget, OutOfMemory; nothing else changes then.
LoadedState read_state(const std::string& path, Engine& engine, std::shared_ptr<const KvPolicy> policy,
                       std::string_view policy_description = {});

}  // namespace razorkv
