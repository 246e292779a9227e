#include "server/checkpoint_store.h"

#include <algorithm>
#include <utility>

namespace razorkv::server {
namespace {

bool serves(const Checkpoint& state, const CheckpointQuery& query) {
  const std::size_t length = state.tokens.size();
  if (state.base != query.base || length > query.prompt.size()) return false;
  const bool whole = length == query.prompt.size();
  if (whole && state.logits.empty()) return false;
  const bool replayed = state.conversation == query.conversation && (state.conversation || whole);
  if (!state.exact() && !replayed) return false;
  return std::equal(state.tokens.begin(), state.tokens.end(), query.prompt.begin());
}

}  // namespace

CheckpointStore::Pointer CheckpointStore::find(const CheckpointQuery& query) {
  auto best = entries_.end();
  for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
    if (!serves(**entry, query)) continue;
    if (best == entries_.end() || (*entry)->tokens.size() > (*best)->tokens.size()) best = entry;
  }
  if (best == entries_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, best);
  return entries_.front();
}

void CheckpointStore::add(Pointer checkpoint) {
  entries_.remove_if([&](const Pointer& entry) {
    return entry->conversation == checkpoint->conversation && entry->base == checkpoint->base &&
           entry->tokens == checkpoint->tokens;
  });
  entries_.push_front(std::move(checkpoint));
}

bool CheckpointStore::evict_oldest() {
  if (entries_.empty()) return false;
  entries_.pop_back();
  return true;
}

void CheckpointStore::erase_base(const std::string& base) {
  entries_.remove_if([&](const Pointer& entry) { return entry->base == base; });
}

void CheckpointStore::erase(const Checkpoint& like) {
  entries_.remove_if([&](const Pointer& entry) { return entry->base == like.base && entry->tokens == like.tokens; });
}

std::size_t CheckpointStore::own_bytes() const {
  std::size_t bytes = 0;
  for (const Pointer& entry : entries_) bytes += entry->own_bytes();
  return bytes;
}

}  // namespace razorkv::server
