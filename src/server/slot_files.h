// Saving, restoring and erasing what a slot has kept, as llama.cpp's users know it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "server/scheduler.h"

namespace razorkv::server {

struct SlotAction {
  std::int64_t tokens = 0;
  std::size_t bytes = 0;  ///< of the file; 0 for erase
  double seconds = 0.0;
};

/// The file of this name in `folder`. Throws ApiError: 501 without a folder; 400 for a name that is empty, begins with
/// a dot, is longer than 200 bytes, or holds anything but letters, digits, "-", "_" and ".".
std::string slot_file(const std::string& folder, const std::string& name);

// All throw ApiError: 404 for a slot that is not there, 409 for one that answers, 400 for one that keeps nothing.
/// Throws FileError; an older file is then still whole.
SlotAction save_slot(Scheduler& scheduler, std::size_t slot, const std::string& path);
/// Later requests that begin with the saved tokens go on from them. Throws ApiError (404: no such file; 400: a file
/// that is cut, corrupt, or of another model or policy); then the slot keeps what it had.
SlotAction restore_slot(Scheduler& scheduler, std::size_t slot, const std::string& path);
SlotAction erase_slot(Scheduler& scheduler, std::size_t slot);

}  // namespace razorkv::server
