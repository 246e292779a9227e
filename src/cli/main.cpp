// The command razorkv.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <new>
#include <string>
#include <vector>

#include "cli/arguments.h"
#include "cli/commands.h"
#include "razorkv/error.h"
#include "razorkv/version.h"

namespace {

int fail(const std::string& message) {
  std::fflush(stdout);
  std::fprintf(stderr, "error: %s\n", message.c_str());
  return razorkv::cli::kExitError;
}

int parse_failure(const CLI::App& app, const CLI::ParseError& error) {
  if (error.get_exit_code() == 0) return app.exit(error);  // help and version
  const auto used = app.get_subcommands();
  const std::string command = used.empty() ? "razorkv" : "razorkv " + used.front()->get_name();
  return fail(std::string(error.what()) + " (see " + command + " --help)");
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Runs GGUF models on CPUs with a KV cache that is compressed per head.", "razorkv");
  app.set_version_flag("--version", razorkv::version());
  app.require_subcommand(1);
  razorkv::cli::add_ask_command(app);
  razorkv::cli::add_run_command(app);
  razorkv::cli::add_chat_command(app);
  razorkv::cli::add_info_command(app);
  razorkv::cli::add_tokenize_command(app);
  razorkv::cli::add_profile_command(app);
  razorkv::cli::add_eval_command(app);
  razorkv::cli::add_bench_command(app);
  razorkv::cli::add_serve_command(app);
  try {
    std::vector<std::string> arguments = razorkv::cli::normalized_arguments(argc, argv);
    const auto named = [&](const CLI::App* command) { return command->get_name() == arguments[0]; };
    if (!arguments.empty() && !arguments[0].starts_with('-') && app.get_subcommands(named).empty()) {
      return fail("unknown command '" + arguments[0] + "' (see razorkv --help)");
    }
    std::reverse(arguments.begin(), arguments.end());  // the order in which CLI11 takes a vector
    app.parse(arguments);
    return 0;
  } catch (const CLI::ParseError& error) {
    return parse_failure(app, error);
  } catch (const razorkv::cli::ExitWith& exit) {
    return exit.code;
  } catch (const std::bad_alloc&) {
    return fail("not enough memory");
  } catch (const std::exception& error) {
    return fail(error.what());
  }
}
