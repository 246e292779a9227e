// One attention problem: random rows laid out as the library wants them, and the reference's answer.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "attention/attention.h"
#include "attention_ref.h"
#include "half_ref.h"

namespace razorkv::test {

struct Shape {
  RowType type = RowType::f32;
  std::int64_t width = 64;
  std::int64_t group = 1;
  std::int64_t rows = 1;  ///< query rows
  std::int64_t anchors = 0;
  std::int64_t begin = 0;       ///< first paged position that the first query row sees
  std::int64_t end = 0;         ///< paged positions that the first query row sees end here
  std::int64_t begin_step = 0;  ///< per query row
  std::int64_t end_step = 1;
  std::int64_t dropped = 0;
  std::int64_t origin = 0;  ///< multiple of kPageRows, <= begin
  float soft_cap = 0.0F;
  float size = 1.0F;          ///< magnitude of queries
  std::int64_t misalign = 1;  ///< floats
};

class AttentionCase {
 public:
  explicit AttentionCase(const Shape& shape, std::uint32_t seed = 1) : shape_(shape), random_(seed) {
    const std::int64_t last = shape.end + (shape.rows - 1) * shape.end_step;
    const std::int64_t pages = std::max<std::int64_t>(0, (last - shape.origin + kPageRows - 1) / kPageRows);
    const std::size_t row = row_bytes(shape.type, shape.width);
    memory_.assign(static_cast<std::size_t>(pages) * 2 * kPageRows * row + 64, std::byte{0xFF});  // NaN
    auto* base = memory_.data() + (64 - reinterpret_cast<std::uintptr_t>(memory_.data()) % 64) % 64;
    for (std::int64_t p = 0; p < pages; ++p) pages_.push_back(base + static_cast<std::size_t>(p) * 2 * kPageRows * row);
    for (std::int64_t p = shape.begin; p < last; ++p) {
      auto* k = base + static_cast<std::size_t>((p - shape.origin) / kPageRows) * 2 * kPageRows * row +
                static_cast<std::size_t>((p - shape.origin) % kPageRows) * row;
      paged_.push_back(put_row(k, k + kPageRows * row));
    }
    anchor_k_.assign(static_cast<std::size_t>(shape.anchors) * row, std::byte{0xFF});
    anchor_v_ = anchor_k_;
    for (std::int64_t i = 0; i < shape.anchors; ++i) {
      anchors_.push_back(put_row(anchor_k_.data() + static_cast<std::size_t>(i) * row,
                                 anchor_v_.data() + static_cast<std::size_t>(i) * row));
    }
    for (std::int64_t r = 0; r < shape.rows; ++r) {
      visible_.push_back({shape.anchors, shape.begin + r * shape.begin_step, shape.end + r * shape.end_step,
                          shape.dropped == 0 ? 0 : shape.dropped + r * shape.begin_step});
    }
    const auto comp = static_cast<std::size_t>(shape.rows * shape.width);
    fill(comp_k_, comp, 0.5F);
    fill(comp_v_, comp, 1.0F);
    fill(q_, static_cast<std::size_t>(shape.misalign + shape.rows * shape.group * (shape.width + 3)), shape.size);
  }

  KvHeadView kv() const {
    KvHeadView view;
    view.type = shape_.type;
    view.width = shape_.width;
    view.anchor_k = anchor_k_.data();
    view.anchor_v = anchor_v_.data();
    view.n_anchors = shape_.anchors;
    view.pages = pages_;
    view.origin = shape_.origin;
    view.visible = visible_;
    view.comp_k = comp_k_.data();
    view.comp_v = comp_v_.data();
    return view;
  }

  QueryView query() const {
    QueryView view;
    view.q = q_.data() + shape_.misalign;
    view.head_stride = shape_.width + 3;
    view.row_stride = shape_.group * view.head_stride;
    view.group = shape_.group;
    view.scale = scale();
    view.soft_cap = shape_.soft_cap;
    return view;
  }

  AttentionSlice whole() const { return {0, shape_.rows, 0, std::int64_t{1} << 40, true}; }
  float scale() const { return 1.0F / std::sqrt(static_cast<float>(shape_.width)); }

  RefOutput expected(std::int64_t row, std::int64_t head) const {
    std::vector<RefRow> rows(anchors_);
    const Visible& visible = visible_[static_cast<std::size_t>(row)];
    for (std::int64_t p = visible.begin; p < visible.end; ++p) {
      rows.push_back(paged_[static_cast<std::size_t>(p - shape_.begin)]);
    }
    if (visible.dropped > 0) {
      RefRow mean;
      for (std::int64_t i = 0; i < shape_.width; ++i) {
        mean.k.push_back(comp_k_[static_cast<std::size_t>(row * shape_.width + i)]);
        mean.v.push_back(comp_v_[static_cast<std::size_t>(row * shape_.width + i)]);
      }
      mean.count = static_cast<double>(visible.dropped);
      rows.push_back(mean);
    }
    std::vector<double> q;
    const QueryView view = query();
    for (std::int64_t i = 0; i < shape_.width; ++i)
      q.push_back(view.q[row * view.row_stride + head * view.head_stride + i]);
    return attend_ref(q, rows, scale(), shape_.soft_cap);
  }

  std::vector<Visible>& visible() { return visible_; }
  std::vector<float>& comp_k() { return comp_k_; }
  std::vector<float>& comp_v() { return comp_v_; }

 private:
  void fill(std::vector<float>& to, std::size_t count, float size) {
    std::normal_distribution<float> normal(0.0F, size);
    to.resize(count);
    for (float& x : to) x = normal(random_);
  }

  RefRow put_row(std::byte* k, std::byte* v) {
    RefRow row;
    std::normal_distribution<float> normal;
    for (auto [to, values] : {std::pair{k, &row.k}, std::pair{v, &row.v}}) {
      for (std::int64_t i = 0; i < shape_.width; ++i) {
        const float x = normal(random_);
        if (shape_.type == RowType::f32) {
          std::memcpy(to + i * 4, &x, 4);
          values->push_back(x);
        } else {
          const std::uint16_t half = to_half(x);
          std::memcpy(to + i * 2, &half, 2);
          values->push_back(from_half(half));
        }
      }
    }
    return row;
  }

  Shape shape_;
  std::mt19937 random_;
  std::vector<std::byte> memory_, anchor_k_, anchor_v_;
  std::vector<const std::byte*> pages_;
  std::vector<RefRow> paged_, anchors_;
  std::vector<Visible> visible_;
  std::vector<float> comp_k_, comp_v_, q_;
};

/// States of one attend() call.
struct States {
  States(std::int64_t rows, std::int64_t group, std::int64_t width)
      : o(static_cast<std::size_t>(rows * group * width)),
        m(static_cast<std::size_t>(rows * group)),
        l(static_cast<std::size_t>(rows * group)) {}
  StateView view() { return {o.data(), m.data(), l.data()}; }
  std::vector<float> o, m, l;
};

inline States run(const AttentionCase& problem, const AttentionSlice& slice) {
  const KvHeadView kv = problem.kv();
  const QueryView query = problem.query();
  States states(slice.row_end - slice.row_begin, query.group, kv.width);
  // Garbage in the scratch must not matter.
  std::vector<float> scratch(attend_scratch_floats(query.group, kv.width), std::numeric_limits<float>::quiet_NaN());
  attend(kv, query, slice, states.view(), scratch.data());
  return states;
}

}  // namespace razorkv::test
