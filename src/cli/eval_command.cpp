// razorkv eval: what a policy costs.
#include "cli/commands.h"
#include "cli/eval_commands.h"

namespace razorkv::cli {

void add_eval_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("eval", "Measure what a policy costs");
  command->require_subcommand(1);
  add_eval_needle_command(*command);
  add_eval_ppl_command(*command);
  add_eval_kld_command(*command);
}

}  // namespace razorkv::cli
