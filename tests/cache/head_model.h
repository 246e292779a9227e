// What one head should hold, by keeping every row for ever, in double precision. Shares no code with the library.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "attention/attention_ref.h"
#include "attention/half_ref.h"

namespace razorkv::test {

struct ModelRule {
  bool everything = true;
  std::int64_t sinks = 0;
  std::int64_t floor = 1;
  std::int64_t divisor = 0;
  bool compensate = true;
};

class HeadModel {
 public:
  HeadModel(const ModelRule& rule, bool half) : rule_(rule), half_(half) {}

  void add(const std::vector<float>& k, const std::vector<float>& v) { rows_.push_back({stored(k), stored(v), 1.0}); }
  /// From this token count on, queries see the compressed head.
  void compress() {
    if (compressed_from_ < 0) compressed_from_ = static_cast<std::int64_t>(rows_.size());
  }
  /// Of the rows so far, later queries see only those at `positions`.
  void keep(const std::vector<std::int64_t>& positions) {
    chosen_until_ = static_cast<std::int64_t>(rows_.size());
    chosen_ = {positions.begin(), positions.end()};
  }

  std::int64_t window(std::int64_t tokens) const {
    const std::int64_t share = rule_.divisor > 0 ? tokens / rule_.divisor : 0;
    return share > rule_.floor ? share : rule_.floor;
  }

  /// Rows that the query at `position` attends to, the compensation row last.
  std::vector<RefRow> seen(std::int64_t position) const {
    std::vector<RefRow> kept;
    RefRow mean{std::vector<double>(rows_[0].k.size()), std::vector<double>(rows_[0].k.size()), 0.0};
    const bool compressed = !rule_.everything && compressed_from_ >= 0 && position >= compressed_from_;
    for (std::int64_t p = 0; p <= position; ++p) {
      if (p < chosen_until_ && position >= chosen_until_ && !chosen_.contains(p)) continue;
      const RefRow& row = rows_[static_cast<std::size_t>(p)];
      if (!compressed || p < rule_.sinks || p > position - window(position + 1)) {
        kept.push_back(row);
        continue;
      }
      mean.count += 1.0;
      for (std::size_t i = 0; i < row.k.size(); ++i) {
        mean.k[i] += row.k[i];
        mean.v[i] += row.v[i];
      }
    }
    if (mean.count > 0.0 && rule_.compensate) {
      for (double& x : mean.k) x /= mean.count;
      for (double& x : mean.v) x /= mean.count;
      kept.push_back(mean);
    }
    return kept;
  }

 private:
  std::vector<double> stored(const std::vector<float>& row) const {
    std::vector<double> result;
    for (const float x : row) result.push_back(half_ ? from_half(to_half(x)) : static_cast<double>(x));
    return result;
  }

  ModelRule rule_;
  bool half_;
  std::int64_t compressed_from_ = -1;
  std::int64_t chosen_until_ = 0;
  std::set<std::int64_t> chosen_;
  std::vector<RefRow> rows_;
};

}  // namespace razorkv::test
