// Ctrl-C.
#pragma once

#include <atomic>

namespace razorkv::cli {

/// While it lives, the first interrupt sets requested() and, where given, `flag`; the second ends the process at once
/// with exit code 130. One at a time.
class InterruptScope {
 public:
  explicit InterruptScope(std::atomic<bool>* flag = nullptr);
  ~InterruptScope();
  InterruptScope(const InterruptScope&) = delete;
  InterruptScope& operator=(const InterruptScope&) = delete;

  static bool requested();
  /// Forgets an interrupt that has been dealt with, and clears the flag.
  void clear();

 private:
  std::atomic<bool>* flag_;
};

}  // namespace razorkv::cli
