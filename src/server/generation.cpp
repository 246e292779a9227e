#include "server/generation.h"

#include <utility>

namespace razorkv::server {

Generation::Wait Generation::next(GenerationDelta& delta, std::chrono::milliseconds limit) {
  std::unique_lock lock(mutex_);
  const bool news = changed_.wait_for(
      lock, limit, [&] { return !deltas_.empty() || finished_ || error_ != nullptr || prefilled_ != seen_; });
  if (!deltas_.empty()) {
    delta = std::move(deltas_.front());
    deltas_.pop_front();
    return Wait::delta;
  }
  if (error_) std::rethrow_exception(error_);
  if (finished_) return Wait::finished;
  if (!news) return Wait::timeout;
  seen_ = prefilled_;
  return Wait::progress;
}

void Generation::cancel() noexcept {
  const std::scoped_lock lock(mutex_);
  cancelled_ = true;
}

bool Generation::cancelled() const {
  const std::scoped_lock lock(mutex_);
  return cancelled_;
}

std::int64_t Generation::prefilled() const {
  const std::scoped_lock lock(mutex_);
  return prefilled_;
}

GenerationSummary Generation::summary() const {
  const std::scoped_lock lock(mutex_);
  return summary_;
}

void Generation::push(GenerationDelta delta) {
  const std::scoped_lock lock(mutex_);
  deltas_.push_back(std::move(delta));
  changed_.notify_all();
}

void Generation::advance(std::int64_t prefilled) {
  const std::scoped_lock lock(mutex_);
  prefilled_ = prefilled;
  changed_.notify_all();
}

void Generation::finish(GenerationSummary summary) {
  const std::scoped_lock lock(mutex_);
  summary_ = std::move(summary);
  finished_ = true;
  changed_.notify_all();
}

void Generation::fail(std::exception_ptr error) {
  const std::scoped_lock lock(mutex_);
  error_ = std::move(error);
  changed_.notify_all();
}

}  // namespace razorkv::server
