// Progress of long work on stderr, only where that is a terminal.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "razorkv/types.h"

namespace razorkv::cli {

class ProgressBar {
 public:
  explicit ProgressBar(std::string label);
  /// Wipes the bar.
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  /// Shows the bar once the work has taken half a second, and asks to stop on an interrupt.
  Progress progress();

 private:
  void show(std::int64_t done, std::int64_t total);

  std::string label_;
  bool terminal_;
  bool shown_ = false;
  std::chrono::steady_clock::time_point start_;
  std::chrono::steady_clock::time_point last_;
};

}  // namespace razorkv::cli
