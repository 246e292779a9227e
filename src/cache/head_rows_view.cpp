// Reading a head: what query rows see, and single rows.
#include <fmt/format.h>

#include <algorithm>

#include "attention/row_codec.h"
#include "cache/head_rows.h"
#include "razorkv/error.h"

namespace razorkv {
namespace {

std::size_t index(std::int64_t value) { return static_cast<std::size_t>(value); }

void write_mean(const double* sum, std::int64_t count, float* out, std::int64_t width) {
  for (std::int64_t i = 0; i < width; ++i) out[i] = static_cast<float>(sum[i] / static_cast<double>(count));
}

}  // namespace

KvHeadView HeadRows::view(std::int64_t rows, HeadViewStorage& storage) const {
  const std::int64_t width = format_.width;
  const std::size_t row = row_bytes(format_.type, width);
  KvHeadView view;
  view.type = format_.type;
  view.width = width;
  view.origin = origin_;
  storage.pages.clear();
  for (const PageRef& page : pages_) storage.pages.push_back(page.data());
  storage.visible.clear();

  if (!compressing_) {
    for (std::int64_t i = 0; i < rows; ++i) storage.visible.push_back({0, 0, tokens_ + i + 1, 0});
  } else {
    view.anchor_k = anchors_->data();
    view.anchor_v = anchors_->data() + index(anchor_capacity()) * row;
    view.n_anchors = anchors_of(tokens_ + rows);
    const std::size_t mean_floats = compensates() ? index(rows * width) : 0;
    storage.comp_k.resize(mean_floats);
    storage.comp_v.resize(mean_floats);
    storage.sums.assign(sum_k_.begin(), sum_k_.end());
    storage.sums.insert(storage.sums.end(), sum_v_.begin(), sum_v_.end());
    double* sum_k = storage.sums.data();
    double* sum_v = sum_k + (compensates() ? width : 0);
    std::int64_t folded = first_;
    for (std::int64_t i = 0; i < rows; ++i) {
      const std::int64_t position = tokens_ + i;
      const std::int64_t begin = kept_ ? first_ : rule_.window_begin(position);
      Visible visible{std::min(view.n_anchors, position + 1), begin, position + 1, 0};
      if (compensates()) {
        for (; folded < begin; ++folded) {
          add_row(format_.type, paged_row(folded), sum_k, width);
          add_row(format_.type, paged_row(folded) + index(kPageRows) * row, sum_v, width);
        }
        visible.dropped = std::max<std::int64_t>(0, begin - rule_.sinks);
        if (visible.dropped > 0) {
          write_mean(sum_k, visible.dropped, storage.comp_k.data() + i * width, width);
          write_mean(sum_v, visible.dropped, storage.comp_v.data() + i * width, width);
        }
      }
      storage.visible.push_back(visible);
    }
    view.comp_k = storage.comp_k.data();
    view.comp_v = storage.comp_v.data();
  }
  view.pages = storage.pages;
  view.visible = storage.visible;
  return view;
}

std::int64_t HeadRows::anchor_at(std::int64_t position) const noexcept {
  if (!kept_) return position >= 0 && position < n_anchors_ ? position : -1;
  const auto found = std::lower_bound(kept_->begin(), kept_->end(), position);
  return found != kept_->end() && *found == position ? found - kept_->begin() : -1;
}

void HeadRows::read(std::int64_t position, float* k, float* v) const {
  const std::size_t row = row_bytes(format_.type, format_.width);
  const std::byte* from = nullptr;
  std::int64_t rows = kPageRows;
  if (const std::int64_t anchor = anchor_at(position); anchor >= 0) {
    from = anchors_->data() + index(anchor) * row;
    rows = anchor_capacity();
  } else if (position >= first_ && position < tokens_) {
    from = paged_row(position);
  } else {
    throw InvalidArgument(fmt::format("row {} is not held: the head has {} anchors and rows [{}, {})", position,
                                      n_anchors_, first_, tokens_));
  }
  load_row(format_.type, from, k, format_.width);
  load_row(format_.type, from + index(rows) * row, v, format_.width);
}

}  // namespace razorkv
