// How the time of a decoded token grows with the bytes of KV rows that it reads.
#pragma once

#include <cstdint>
#include <optional>

#include "bench/bench_run.h"

namespace razorkv::bench {

/// Least-squares line: seconds a token = base + bytes / rate.
struct Growth {
  double base = 0.0;  ///< seconds a token without KV rows
  double rate = 0.0;  ///< bytes of KV rows read per second beyond that
  double fit = 0.0;   ///< R^2, 1 = the points lie on the line
};

/// The line through the medians of the decode tests of `tokens` tokens. None with fewer than three depths, or where
/// the time does not grow with the bytes.
std::optional<Growth> decode_growth(const BenchResult& result, std::int64_t tokens);

}  // namespace razorkv::bench
