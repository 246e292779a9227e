#include "server/slot_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/stopwatch.h"
#include "razorkv/error.h"
#include "server/api_error.h"
#include "server/checkpoint_file.h"

namespace razorkv::server {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLongestName = 200;

void check_idle(const SlotTable& slots, std::size_t slot) {
  if (slot >= slots.count()) {
    throw ApiError(404, fmt::format("there is no slot {}; expected 0 to {}", slot, slots.count() - 1), "id_slot");
  }
  if (slots.busy(slot)) throw ApiError(409, fmt::format("slot {} is answering; try again later", slot), "id_slot");
}

SlotTable::Pointer kept_state(const SlotTable& slots, std::size_t slot) {
  check_idle(slots, slot);
  SlotTable::Pointer state = slots.state(slot);
  if (!state) throw ApiError(400, fmt::format("slot {} keeps nothing, or what it kept was forgotten", slot), "id_slot");
  return state;
}

}  // namespace

std::string slot_file(const std::string& folder, const std::string& name) {
  if (folder.empty()) {
    throw ApiError(501, "this server does not save slots; start it with --slot-save-path FOLDER", {}, "not_supported");
  }
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
           c == '.';
  };
  if (name.empty() || name.size() > kLongestName || name.front() == '.' || !std::ranges::all_of(name, plain)) {
    throw ApiError(
        400,
        fmt::format("filename: expected 1 to {} letters, digits, \"-\", \"_\" and \".\", the first not a dot",
                    kLongestName),
        "filename", "invalid_value");
  }
  return folder + "/" + name;
}

SlotAction save_slot(Scheduler& scheduler, std::size_t slot, const std::string& path) {
  const Stopwatch watch;
  SlotTable::Pointer state;
  scheduler.on_slots([&](SlotTable& slots, CheckpointStore& /*store*/) { state = kept_state(slots, slot); });
  if (!state->base.empty()) {
    throw ApiError(400, fmt::format("slot {} goes on from document {}, which is saved by itself", slot, state->base),
                   "id_slot");
  }
  write_checkpoint(path, *state, scheduler.policy());
  return {static_cast<std::int64_t>(state->tokens.size()), fs::file_size(path), watch.seconds()};
}

SlotAction restore_slot(Scheduler& scheduler, std::size_t slot, const std::string& path) {
  const Stopwatch watch;
  if (!fs::is_regular_file(path)) throw ApiError(404, "there is no such file", "filename", "not_found");
  if (scheduler.settings().cache_bytes == 0) {
    throw ApiError(400, "this server keeps no states (--cache-ram 0), so none can be restored", {}, "not_supported");
  }
  scheduler.on_slots([&](const SlotTable& slots, CheckpointStore& /*store*/) { check_idle(slots, slot); });
  SlotAction done;
  try {
    scheduler.on_engine([&](const std::shared_ptr<Engine>& engine) {
      Checkpoint state = read_checkpoint(path, engine, scheduler.policy(), {}, false);
      done.tokens = state.sequence.tokens();
      // Who restores a state wants it gone on from, by whichever kind of request.
      for (const bool conversation : {false, true}) {
        state.conversation = conversation;
        scheduler.keep_in_slot(slot, std::make_shared<const Checkpoint>(state));
      }
    });
  } catch (const FileError& error) {
    throw ApiError(400, error.what(), "filename", "bad_file");
  }
  done.bytes = fs::file_size(path);
  done.seconds = watch.seconds();
  return done;
}

SlotAction erase_slot(Scheduler& scheduler, std::size_t slot) {
  const Stopwatch watch;
  SlotAction done;
  scheduler.on_slots([&](SlotTable& slots, CheckpointStore& store) {
    const SlotTable::Pointer state = kept_state(slots, slot);
    done.tokens = static_cast<std::int64_t>(state->tokens.size());
    store.erase(*state);
  });
  done.seconds = watch.seconds();
  return done;
}

}  // namespace razorkv::server
