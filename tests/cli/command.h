// Runs the built command as a user would.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <csignal>
#include <functional>
#include <string>
#include <vector>

namespace razorkv::test {

struct CommandResult {
  int exit_code = -1;  ///< -1: ended by a signal
  int signal = 0;
  std::string out;
  std::string err;
  double seconds = 0.0;
};

struct CommandOptions {
  std::string input;  ///< standard input
  /// Called once with the process id when standard output has given its first byte.
  std::function<void(pid_t)> on_output;
  double limit_seconds = 120.0;  ///< then it is killed
};

/// `arguments` without the program's name.
CommandResult run_command(const std::vector<std::string>& arguments, const CommandOptions& options = {});

}  // namespace razorkv::test
