#include "server/slot_table.h"

#include <algorithm>

namespace razorkv::server {

std::size_t SlotTable::used() const {
  return static_cast<std::size_t>(std::ranges::count_if(slots_, [](const Slot& slot) { return slot.busy; }));
}

std::vector<std::size_t> SlotTable::take(std::size_t count) {
  std::vector<std::size_t> taken;
  for (std::size_t slot = 0; slot < slots_.size() && taken.size() < count; ++slot) {
    if (slots_[slot].busy) continue;
    slots_[slot].busy = true;
    taken.push_back(slot);
  }
  return taken;
}

void SlotTable::release(const std::vector<std::size_t>& taken) {
  for (const std::size_t slot : taken) slots_.at(slot).busy = false;
}

}  // namespace razorkv::server
