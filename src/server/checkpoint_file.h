// Checkpoints on disk.
#pragma once

#include <memory>
#include <string>

#include "razorkv/policy.h"
#include "server/checkpoint_store.h"

namespace razorkv::server {

/// `policy`: that of the server. Throws FileError; then an older file is still whole.
void write_checkpoint(const std::string& path, const Checkpoint& checkpoint, const Policy& policy);

/// On the engine's thread only. Throws FileError (cut, corrupt, of another model or policy), OutOfBudget, OutOfMemory.
Checkpoint read_checkpoint(const std::string& path, const std::shared_ptr<Engine>& engine, const Policy& policy,
                           const std::string& base, bool conversation);

}  // namespace razorkv::server
