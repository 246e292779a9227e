// Feeds a HeadRows and its model the same rows, and compares what they see.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "attention/attention.h"
#include "attention/state.h"
#include "cache/head_rows.h"
#include "head_model.h"

namespace razorkv::test {

inline std::vector<float> random_row(std::int64_t width, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> row(static_cast<std::size_t>(width));
  for (float& x : row) x = normal(random);
  return row;
}

inline HeadRule rule_of(const ModelRule& rule) {
  return {rule.everything, rule.sinks, rule.floor, rule.divisor, rule.compensate};
}

/// Everything that a batch's query rows can observe.
struct Seen {
  std::vector<Visible> visible;
  std::vector<float> comp;  ///< K and V compensation rows that exist, in order
  std::vector<float> out;   ///< attention output of each query row
};

struct Fed {
  explicit Fed(const ModelRule& model_rule, RowType type = RowType::f16, std::int64_t width = 8)
      : format{type, width},
        pool(format.page_bytes(), 0),
        head(format, rule_of(model_rule)),
        model(model_rule, type == RowType::f16) {
    pool.poison_new_pages(true);
  }

  std::vector<float> k(std::int64_t position) const {
    return random_row(format.width, static_cast<std::uint32_t>(position * 3 + 1 + salt));
  }
  std::vector<float> v(std::int64_t position) const {
    return random_row(format.width, static_cast<std::uint32_t>(position * 3 + 2 + salt));
  }
  std::vector<float> q(std::int64_t position) const {
    return random_row(format.width, static_cast<std::uint32_t>(position * 3 + 3));
  }

  void write(std::int64_t rows) {
    head.reserve(pool, rows);
    for (std::int64_t i = 0; i < rows; ++i) {
      head.write(head.tokens() + i, k(head.tokens() + i).data(), v(head.tokens() + i).data());
    }
  }

  /// Feeds a batch; returns what its rows saw and checks it against the model.
  Seen feed(std::int64_t rows) {
    write(rows);
    for (std::int64_t i = 0; i < rows; ++i) model.add(k(head.tokens() + i), v(head.tokens() + i));
    Seen seen = look(rows);
    head.commit(rows);
    return seen;
  }

  Seen look(std::int64_t rows) {
    const std::int64_t width = format.width;
    const KvHeadView view = head.view(rows, storage);
    Seen seen;
    std::vector<float> queries;
    for (std::int64_t i = 0; i < rows; ++i) {
      seen.visible.push_back(view.visible[static_cast<std::size_t>(i)]);
      if (seen.visible.back().dropped > 0) {
        seen.comp.insert(seen.comp.end(), view.comp_k + i * width, view.comp_k + (i + 1) * width);
        seen.comp.insert(seen.comp.end(), view.comp_v + i * width, view.comp_v + (i + 1) * width);
      }
      const std::vector<float> row = q(head.tokens() + i);
      queries.insert(queries.end(), row.begin(), row.end());
    }
    const auto count = static_cast<std::size_t>(rows);
    std::vector<float> o(count * static_cast<std::size_t>(width)), m(count), l(count);
    std::vector<float> scratch(attend_scratch_floats(1, width), std::numeric_limits<float>::quiet_NaN());
    attend(view, {queries.data(), width, width, 1, 0.5F, 0.0F}, {0, rows, 0, std::int64_t{1} << 40, true},
           {o.data(), m.data(), l.data()}, scratch.data());
    seen.out.resize(o.size());
    for (std::int64_t i = 0; i < rows; ++i) {
      finish_state(seen.out.data() + i * width, o.data() + i * width, l[static_cast<std::size_t>(i)], width);
      const std::vector<float> row = q(head.tokens() + i);
      const RefOutput expected = attend_ref({row.begin(), row.end()}, model.seen(head.tokens() + i), 0.5, 0.0);
      for (std::size_t d = 0; d < expected.out.size(); ++d) {
        // Written so that NaN fails. Float32 sums of at most 200 rows: 200 * 2^-24 = 1.2e-5 at worst.
        const double error = std::fabs(seen.out[static_cast<std::size_t>(i * width) + d] - expected.out[d]);
        if (!(error <= 1e-5)) {
          ADD_FAILURE() << "row " << head.tokens() + i << " element " << d << " off by " << error;
          return seen;
        }
      }
    }
    return seen;
  }

  RowFormat format;
  PagePool pool;
  HeadRows head;
  HeadModel model;
  HeadViewStorage storage;
  std::int64_t salt = 0;
};

}  // namespace razorkv::test
