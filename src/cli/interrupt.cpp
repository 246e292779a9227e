#include "cli/interrupt.h"

#include <unistd.h>

#include <csignal>

#include "cli/commands.h"

namespace razorkv::cli {
namespace {

std::atomic<bool> interrupted{false};
std::atomic<std::atomic<bool>*> target{nullptr};
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<std::atomic<bool>*>::is_always_lock_free,
              "the signal handler uses them");

void on_signal(int /*number*/) {
  if (interrupted.exchange(true)) _exit(kExitInterrupted);
  if (std::atomic<bool>* flag = target.load()) flag->store(true);
}

void set_handler(void (*handler)(int)) {
  struct sigaction action = {};
  action.sa_handler = handler;  // no SA_RESTART: reading a line from the terminal ends as well
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

}  // namespace

InterruptScope::InterruptScope(std::atomic<bool>* flag) : flag_(flag) {
  interrupted = false;
  target = flag;
  set_handler(on_signal);
}

InterruptScope::~InterruptScope() {
  set_handler(SIG_DFL);
  target = nullptr;
}

bool InterruptScope::requested() { return interrupted; }

void InterruptScope::clear() {
  interrupted = false;
  if (flag_ != nullptr) flag_->store(false);
}

}  // namespace razorkv::cli
