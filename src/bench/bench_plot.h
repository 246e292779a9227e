// Decode speed against depth as a picture.
#pragma once

#include <string>

#include "bench/bench_report.h"

namespace razorkv::bench {

/// SVG: median tokens/s of the decode tests of the first -n against depth, razorkv under its policy, and libllama with
/// flash attention off and on where it ran. Throws InvalidArgument with fewer than two depths.
std::string decode_plot_svg(const BenchFacts& facts, const BenchResult& result);

}  // namespace razorkv::bench
