#include "bench/memory_bandwidth.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <new>
#include <thread>
#include <vector>

#include "base/stopwatch.h"
#include "razorkv/error.h"

namespace razorkv::bench {
namespace {

std::uint64_t sum_of(const std::uint64_t* values, std::size_t count) {
  std::uint64_t sums[8] = {};
  for (std::size_t i = 0; i + 8 <= count; i += 8) {
    for (std::size_t lane = 0; lane < 8; ++lane) sums[lane] += values[i + lane];
  }
  std::uint64_t sum = 0;
  for (const std::uint64_t one : sums) sum += one;
  return sum;
}

}  // namespace

double memory_bandwidth(int threads, std::size_t bytes) {
  const std::size_t share = bytes / sizeof(std::uint64_t) / static_cast<std::size_t>(threads);
  std::vector<std::uint64_t> buffer;
  try {
    buffer.assign(share * static_cast<std::size_t>(threads), 1);
  } catch (const std::bad_alloc&) {
    throw OutOfMemory("no memory for the buffer of " + std::to_string(bytes >> 20U) +
                      " MiB that the bandwidth is measured with");
  }
  double best = 0.0;
  for (int pass = 0; pass < 3; ++pass) {
    std::atomic<std::uint64_t> total{0};
    const Stopwatch watch;
    std::vector<std::thread> workers;
    workers.reserve(static_cast<std::size_t>(threads));
    for (int t = 0; t < threads; ++t) {
      workers.emplace_back([&, t] { total += sum_of(buffer.data() + static_cast<std::size_t>(t) * share, share); });
    }
    for (std::thread& worker : workers) worker.join();
    const double seconds = watch.seconds();
    if (total != buffer.size() / 8 * 8 && share % 8 == 0) throw Error("memory returned what was not written");
    best = std::max(best, static_cast<double>(buffer.size() * sizeof(std::uint64_t)) / seconds);
  }
  return best;
}

}  // namespace razorkv::bench
