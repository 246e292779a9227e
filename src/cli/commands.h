// The subcommands of razorkv. Each adds itself to the application; its callback runs it.
//
// Callbacks throw razorkv::Error for what went wrong (exit code 1, one line on stderr) and ExitWith for other codes.
#pragma once

#include <CLI/CLI.hpp>

namespace razorkv::cli {

struct ExitWith {
  int code = 0;
};
inline constexpr int kExitError = 1;
inline constexpr int kExitInterrupted = 130;

void add_ask_command(CLI::App& app);
void add_run_command(CLI::App& app);
void add_chat_command(CLI::App& app);
void add_info_command(CLI::App& app);
void add_tokenize_command(CLI::App& app);
void add_profile_command(CLI::App& app);
void add_eval_command(CLI::App& app);
void add_bench_command(CLI::App& app);
void add_serve_command(CLI::App& app);

}  // namespace razorkv::cli
