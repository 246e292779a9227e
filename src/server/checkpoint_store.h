// States that later requests may start from, found by their tokens.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cache/kv_sequence.h"
#include "engine/engine.h"
#include "razorkv/types.h"

namespace razorkv::server {

/// The state after `tokens`. Immutable; costs page references.
struct Checkpoint {
  std::shared_ptr<Engine> engine;  ///< owns the pages, so it must go last
  KvSequence sequence;
  std::vector<Token> tokens;
  std::vector<float> logits;  ///< [vocabulary] after the last token; empty: only longer prompts can use it
  std::string base;           ///< id of the document that it goes on from; empty: none
  bool conversation = false;  ///< made by a chat request

  /// Nothing has been dropped and compression has not begun: going on from here equals reading everything at once.
  bool exact() const { return !sequence.compressed() || sequence.policy().streaming; }
  std::size_t own_bytes() const { return tokens.size() * sizeof(Token) + logits.size() * sizeof(float); }
};

struct CheckpointQuery {
  std::span<const Token> prompt;
  std::string base;
  bool conversation = false;
};

/// Not thread-safe. Forgets the least recently used first.
class CheckpointStore {
 public:
  using Pointer = std::shared_ptr<const Checkpoint>;

  /// The longest state that the prompt may go on from, or null. An exact state serves every prompt that begins with its
  /// tokens; a compressed one only what replaying the same requests would bring to it: the next turns of a chat, or the
  /// very same prompt.
  Pointer find(const CheckpointQuery& query);
  /// Takes the place of one with the same tokens, base and kind.
  void add(Pointer checkpoint);
  /// False when there is none.
  bool evict_oldest();
  void erase_base(const std::string& base);
  /// Forgets the states of these tokens and this base, of either kind.
  void erase(const Checkpoint& like);
  void clear() { entries_.clear(); }
  std::size_t count() const { return entries_.size(); }
  /// Bytes of tokens and logits; pages are counted by their pool.
  std::size_t own_bytes() const;

 private:
  std::list<Pointer> entries_;  // last used first
};

}  // namespace razorkv::server
