#include <filesystem>

#include "base/atomic_file.h"
#include "cli/commands.h"
#include "cli/eval_commands.h"
#include "cli/interrupt.h"
#include "cli/report.h"
#include "razorkv/error.h"

namespace razorkv::cli {

void ColumnArguments::add(CLI::App& command) {
  command
      .add_option("--policies", policies,
                  "full, none, all, streaming-llm, razor:HEADS, razor-nocomp:HEADS, random:COUNT:SEED, snapkv, "
                  "pyramidkv, h2o, razor+snapkv:HEADS, razor+h2o:HEADS; @SHARE or @ROWS behind; commas between")
      ->capture_default_str();
  policy.window = 1;
  command.add_option("--keep,--sinks", policy.sinks, "First tokens that every head keeps")->capture_default_str();
  command.add_option("--window", policy.window, "Last tokens that a head keeps, at least")->capture_default_str();
  command.add_option("--window-div", policy.window_divisor, "The window is at least context / this")
      ->capture_default_str();
  command.add_option("--profile", policy.profile, "Head profile (default: looked up or made)")->type_name("FILE");
}

void run_interruptible(const std::string& stopped, const std::function<void(const std::atomic<bool>*)>& work) {
  std::atomic<bool> cancel{false};
  InterruptScope interrupt(&cancel);
  try {
    work(&cancel);
  } catch (const Cancelled&) {
    print_note(stopped);
    throw ExitWith{kExitInterrupted};
  }
}

void write_json_file(const std::string& path, const nlohmann::json& document) {
  if (path.empty()) return;
  write_file_atomically(path, document.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

std::string file_name(const std::string& path) { return std::filesystem::path(path).filename().string(); }

}  // namespace razorkv::cli
