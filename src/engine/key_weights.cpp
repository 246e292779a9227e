#include "engine/key_weights.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "attention/row_codec.h"

namespace razorkv {
namespace {

constexpr std::size_t kPage = static_cast<std::size_t>(kPageRows);
constexpr std::size_t kColumns = 16;  // keys whose products stay in registers

/// One page of keys as float32, [width, kPageRows]: products with neighbouring keys are neighbours.
void transpose_keys(const KvHeadView& kv, const std::byte* page, std::int64_t count, std::vector<float>& keys,
                    std::vector<float>& row) {
  std::fill(keys.begin(), keys.end(), 0.0F);
  for (std::int64_t j = 0; j < count; ++j) {
    load_row(kv.type, page + static_cast<std::size_t>(j) * row_bytes(kv.type, kv.width), row.data(), kv.width);
    for (std::size_t i = 0; i < row.size(); ++i) keys[i * kPage + static_cast<std::size_t>(j)] = row[i];
  }
}

void products(const float* q, const std::vector<float>& keys, std::size_t width, std::array<float, kPage>& out) {
  for (std::size_t base = 0; base < kPage; base += kColumns) {
    std::array<float, kColumns> sum{};
    for (std::size_t i = 0; i < width; ++i) {
      const float* k = keys.data() + i * kPage + base;
      for (std::size_t j = 0; j < kColumns; ++j) sum[j] += q[i] * k[j];
    }
    std::copy(sum.begin(), sum.end(), out.begin() + static_cast<std::ptrdiff_t>(base));
  }
}

}  // namespace

void add_key_weights(const KvHeadView& kv, const WeighingQueries& queries, std::span<double> sums) {
  const auto width = static_cast<std::size_t>(kv.width);
  const QueryView& query = queries.query;
  const std::int64_t end = queries.first + queries.rows;
  std::vector<float> keys(width * kPage), row(width);
  std::array<float, kPage> logits{};
  for (std::int64_t base = 0; base < end; base += kPageRows) {
    const std::byte* page = kv.pages[static_cast<std::size_t>(base / kPageRows)];
    transpose_keys(kv, page, std::min(kPageRows, end - base), keys, row);
    for (std::int64_t r = std::max<std::int64_t>(0, base - queries.first); r < queries.rows; ++r) {
      const auto seen = static_cast<std::size_t>(std::min(kPageRows, queries.first + r + 1 - base));
      for (std::int64_t g = 0; g < query.group; ++g) {
        products(query.q + r * query.row_stride + g * query.head_stride, keys, width, logits);
        const float lse = queries.lse[r * queries.lse_row_stride + g];
        for (std::size_t j = 0; j < seen; ++j) {
          float logit = logits[j] * query.scale;
          if (query.soft_cap > 0.0F) logit = query.soft_cap * std::tanh(logit / query.soft_cap);
          sums[static_cast<std::size_t>(base) + j] += static_cast<double>(std::exp(logit - lse));
        }
      }
    }
  }
}

}  // namespace razorkv
