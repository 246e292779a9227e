// How many threads are worth starting.
#pragma once

namespace razorkv {

/// Processors that this process may run on: its affinity mask, cut by the cgroup's CPU quota. At least 1.
int usable_processors();

}  // namespace razorkv
