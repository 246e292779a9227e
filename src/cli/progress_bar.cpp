#include "cli/progress_bar.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "cli/interrupt.h"

namespace razorkv::cli {

using Clock = std::chrono::steady_clock;

ProgressBar::ProgressBar(std::string label)
    : label_(std::move(label)), terminal_(isatty(STDERR_FILENO) != 0), start_(Clock::now()) {}

ProgressBar::~ProgressBar() {
  if (shown_) std::fputs("\r\033[K", stderr);
}

Progress ProgressBar::progress() {
  return [this](std::int64_t done, std::int64_t total) {
    if (terminal_) show(done, total);
    return !InterruptScope::requested();
  };
}

void ProgressBar::show(std::int64_t done, std::int64_t total) {
  const auto now = Clock::now();
  if (total <= 0 || now - start_ < std::chrono::milliseconds(500) || now - last_ < std::chrono::milliseconds(100))
    return;
  last_ = now;
  shown_ = true;
  constexpr std::int64_t kWidth = 30;
  const std::int64_t filled = std::clamp<std::int64_t>(done * kWidth / total, 0, kWidth);
  const double seconds = std::chrono::duration<double>(now - start_).count();
  const double left = done > 0 ? seconds / static_cast<double>(done) * static_cast<double>(total - done) : 0.0;
  const std::string bar =
      std::string(static_cast<std::size_t>(filled), '#') + std::string(static_cast<std::size_t>(kWidth - filled), '.');
  std::fprintf(stderr, "\r%s [%s] %lld / %lld, %.0f s left\033[K", label_.c_str(), bar.c_str(),
               static_cast<long long>(done), static_cast<long long>(total), left);
  std::fflush(stderr);
}

}  // namespace razorkv::cli
