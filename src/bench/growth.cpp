#include "bench/growth.h"

#include <cstddef>
#include <vector>

#include "bench/statistics.h"

namespace razorkv::bench {

std::optional<Growth> decode_growth(const BenchResult& result, std::int64_t tokens) {
  std::vector<double> bytes;
  std::vector<double> seconds;
  for (const BenchRow& row : result.rows) {
    if (row.test.prefill || row.test.tokens != tokens) continue;
    bytes.push_back(row.kv_read);
    seconds.push_back(1.0 / median(row.speed));
  }
  if (bytes.size() < 3) return std::nullopt;
  const double middle_bytes = mean(bytes);
  const double middle_seconds = mean(seconds);
  double bytes_squared = 0.0;
  double product = 0.0;
  double seconds_squared = 0.0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const double x = bytes[i] - middle_bytes;
    const double y = seconds[i] - middle_seconds;
    bytes_squared += x * x;
    product += x * y;
    seconds_squared += y * y;
  }
  if (!(product > 0.0)) return std::nullopt;
  Growth growth;
  growth.rate = bytes_squared / product;
  growth.base = middle_seconds - middle_bytes / growth.rate;
  growth.fit = product * product / (bytes_squared * seconds_squared);
  return growth;
}

}  // namespace razorkv::bench
