// Which slots answer, and what each of them has kept last.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "server/checkpoint_store.h"

namespace razorkv::server {

/// Not thread-safe.
class SlotTable {
 public:
  using Pointer = CheckpointStore::Pointer;

  explicit SlotTable(std::size_t count) : slots_(count) {}

  std::size_t count() const { return slots_.size(); }
  std::size_t used() const;
  bool busy(std::size_t slot) const { return slots_.at(slot).busy; }
  /// The `count` lowest free slots; there must be as many.
  std::vector<std::size_t> take(std::size_t count);
  void release(const std::vector<std::size_t>& taken);

  /// What the slot keeps; null once it was forgotten to make room.
  Pointer state(std::size_t slot) const { return slots_.at(slot).state.lock(); }
  void keep(std::size_t slot, const Pointer& state) { slots_.at(slot).state = state; }

 private:
  struct Slot {
    bool busy = false;
    std::weak_ptr<const Checkpoint> state;  // the store decides what is kept
  };
  std::vector<Slot> slots_;
};

}  // namespace razorkv::server
