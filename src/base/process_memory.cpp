#include "base/process_memory.h"

#include <fstream>
#include <string>

namespace razorkv {

ProcessMemory process_memory() {
  ProcessMemory memory;
  std::ifstream status("/proc/self/status");
  std::string word;
  std::size_t kib = 0;
  while (status >> word) {
    std::size_t* field = nullptr;
    if (word == "VmRSS:") field = &memory.resident;
    if (word == "RssAnon:") field = &memory.anonymous;
    if (word == "VmHWM:") field = &memory.peak;
    if (field != nullptr && status >> kib) *field = kib * 1024;
  }
  return memory;
}

}  // namespace razorkv
