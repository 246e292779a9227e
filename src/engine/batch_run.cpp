#include "engine/batch_run.h"

#include <utility>

namespace razorkv {

template <typename Work>
void BatchRun::guarded(const Work& work) noexcept {
  if (failed_.load(std::memory_order_relaxed)) return;
  try {
    work();
  } catch (...) {
    const std::scoped_lock lock(error_mutex_);
    if (!error_) error_ = std::current_exception();
    failed_.store(true, std::memory_order_relaxed);
  }
}

void BatchRun::start(std::vector<BatchPart> parts, AttentionObserver* observer, int max_threads) {
  parts_ = std::move(parts);
  observer_ = observer;
  error_ = nullptr;
  failed_.store(false);
  stored_.store(0);
  attended_.store(0);
  std::int64_t max_heads = 0;
  std::int64_t max_kv_heads = 0;
  for (const LayerConfig& layer : config_.layers) {
    max_heads = std::max(max_heads, layer.heads);
    max_kv_heads = std::max(max_kv_heads, layer.kv_heads);
  }
  const std::size_t slots = parts_.size() * static_cast<std::size_t>(max_kv_heads);
  if (storage_.size() < slots) storage_.resize(slots);
  views_.resize(slots);
  heads_.reserve(slots);
  plan_.prepare(max_threads);
  if (observer_ != nullptr) {
    const BatchPart& last = parts_.back();
    lse_.resize(static_cast<std::size_t>((last.row_offset + last.n) * max_heads));
  }
}

void BatchRun::store(std::int64_t layer, const float* k, const float* v, const float* q, int ith, int nth) noexcept {
  const LayerConfig& shape = config_.layers[static_cast<std::size_t>(layer)];
  const std::int64_t width = config_.head_width;
  const std::int64_t row_stride = shape.kv_heads * width;
  guarded([&] {
    const auto slots = static_cast<std::int64_t>(parts_.size()) * shape.kv_heads;
    for (std::int64_t slot = ith; slot < slots; slot += nth) {
      const BatchPart& part = parts_[static_cast<std::size_t>(slot / shape.kv_heads)];
      const std::int64_t head = slot % shape.kv_heads;
      HeadRows& rows = part.sequence->layer(layer)[static_cast<std::size_t>(head)];
      for (std::int64_t r = 0; r < part.n; ++r) {
        const std::int64_t at = (part.row_offset + r) * row_stride + head * width;
        rows.write(part.begin + r, k + at, v + at);
      }
      views_[static_cast<std::size_t>(slot)] = rows.view(part.n, storage_[static_cast<std::size_t>(slot)]);
    }
  });
  if (stored_.fetch_add(1, std::memory_order_acq_rel) + 1 < nth) return;
  stored_.store(0, std::memory_order_relaxed);
  guarded([&] {
    const std::int64_t group = shape.heads / shape.kv_heads;
    heads_.clear();
    for (std::size_t p = 0; p < parts_.size(); ++p) {
      for (std::int64_t head = 0; head < shape.kv_heads; ++head) {
        const std::int64_t at = parts_[p].row_offset * shape.heads + head * group;
        PlanHead plan_head;
        plan_head.kv = &views_[p * static_cast<std::size_t>(shape.kv_heads) + static_cast<std::size_t>(head)];
        plan_head.query.q = q + at * width;
        plan_head.query.row_stride = shape.heads * width;
        plan_head.query.head_stride = width;
        plan_head.query.group = group;
        plan_head.query.scale = config_.attention_scale;
        plan_head.query.soft_cap = config_.attention_soft_cap;
        plan_head.out_offset = at * width;
        plan_head.out_row_stride = shape.heads * width;
        plan_head.out_head_stride = width;
        plan_head.lse = observer_ != nullptr ? lse_.data() + at : nullptr;
        plan_head.lse_row_stride = shape.heads;
        heads_.push_back(plan_head);
      }
    }
    plan_.build(heads_, nth);
  });
}

void BatchRun::attend(float* out, int ith, int nth) noexcept {
  if (failed_.load(std::memory_order_relaxed)) return;
  plan_.run(ith, out);
  if (attended_.fetch_add(1, std::memory_order_acq_rel) + 1 < nth) return;
  attended_.store(0, std::memory_order_relaxed);
  plan_.merge(0, 1, out);
}

void BatchRun::observe(const ObservedAttention& tensors, int ith, int nth) noexcept {
  if (observer_ == nullptr || failed_.load(std::memory_order_relaxed)) return;
  const LayerConfig& shape = config_.layers[static_cast<std::size_t>(tensors.layer)];
  const std::int64_t width = config_.head_width;
  for (std::size_t p = 0; p < parts_.size(); ++p) {
    const BatchPart& part = parts_[p];
    ObservedAttention seen = tensors;
    seen.sequence = static_cast<std::int64_t>(p);
    seen.begin = part.begin;
    seen.n = part.n;
    seen.q += part.row_offset * shape.heads * width;
    seen.output += part.row_offset * shape.heads * width;
    seen.q_before_rope += part.row_offset * shape.heads * width;
    seen.k_before_rope += part.row_offset * shape.kv_heads * width;
    seen.residual += part.row_offset * config_.embedding;
    seen.lse = lse_.data() + part.row_offset * shape.heads;
    seen.heads = part.sequence->layer(tensors.layer);
    observer_->observe(seen, ith, nth);
  }
}

}  // namespace razorkv
