#include "base/processors.h"

#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <thread>

#include "base/cpu_quota.h"

namespace razorkv {
namespace {

struct CpuSetFree {
  void operator()(cpu_set_t* set) const { CPU_FREE(set); }
};

/// Processors in the affinity mask; 0 when the system does not say.
int affinity_count() {
  constexpr int kMostProcessors = 1 << 16;
  for (int capacity = CPU_SETSIZE; capacity <= kMostProcessors; capacity *= 2) {
    const std::unique_ptr<cpu_set_t, CpuSetFree> set(CPU_ALLOC(static_cast<std::size_t>(capacity)));
    if (!set) return 0;
    const std::size_t bytes = CPU_ALLOC_SIZE(static_cast<std::size_t>(capacity));
    if (::sched_getaffinity(0, bytes, set.get()) == 0) return CPU_COUNT_S(bytes, set.get());
    if (errno != EINVAL) return 0;  // EINVAL: the kernel's mask is longer
  }
  return 0;
}

}  // namespace

int usable_processors() {
  int count = affinity_count();
  if (count < 1) count = static_cast<int>(std::thread::hardware_concurrency());
  // Rounded down: threads that wait for each other at every barrier lose more by being stopped than a part of a
  // processor gives.
  if (const auto quota = cpu_quota(); quota && *quota < count) count = static_cast<int>(*quota);
  return std::max(1, count);
}

}  // namespace razorkv
