// The subcommands of razorkv eval, and what they share.
#pragma once

#include <CLI/CLI.hpp>
#include <atomic>
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/common_options.h"

namespace razorkv::cli {

void add_eval_needle_command(CLI::App& eval);
void add_eval_ppl_command(CLI::App& eval);
void add_eval_kld_command(CLI::App& eval);

/// Policies as columns, and the sizes that they are built from.
struct ColumnArguments {
  std::string policies;
  PolicyOptions policy;

  /// `policies`, as set, is the default.
  void add(CLI::App& command);
};

/// Runs `work` with a flag that Ctrl-C sets; on Cancelled prints `stopped` and leaves with exit code 130.
void run_interruptible(const std::string& stopped, const std::function<void(const std::atomic<bool>*)>& work);

/// Writes a JSON document to a file; bytes that are not UTF-8 become U+FFFD. An empty path: nothing.
void write_json_file(const std::string& path, const nlohmann::json& document);

/// "book.txt" of "/folder/book.txt".
std::string file_name(const std::string& path);

}  // namespace razorkv::cli
