// How fast this machine reads memory.
#pragma once

#include <cstddef>

namespace razorkv::bench {

/// Bytes per second that `threads` threads read together from a buffer of `bytes`, which should be several times the
/// last cache: the best of three passes. Throws OutOfMemory.
double memory_bandwidth(int threads, std::size_t bytes = std::size_t{1} << 30U);

}  // namespace razorkv::bench
