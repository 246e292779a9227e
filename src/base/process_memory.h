// Memory of this process, as the system counts it.
#pragma once

#include <cstddef>

namespace razorkv {

/// Bytes; 0 where the system does not say.
struct ProcessMemory {
  std::size_t resident = 0;   ///< in memory now, mapped files included
  std::size_t anonymous = 0;  ///< of these, not from files: heap, cache pages, copied weights
  std::size_t peak = 0;       ///< most that was ever resident
};

/// Reads /proc/self/status.
ProcessMemory process_memory();

}  // namespace razorkv
