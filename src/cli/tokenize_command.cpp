// razorkv tokenize: text to tokens.
#include <cstdio>
#include <memory>
#include <string>

#include "base/utf8.h"
#include "cli/commands.h"
#include "cli/common_options.h"
#include "cli/prompt_source.h"
#include "cli/report.h"
#include "model/vocabulary.h"

namespace razorkv::cli {
namespace {

struct TokenizeArguments {
  ModelArguments model;
  PromptArguments prompt;
  bool no_bos = false;
  bool special = false;
  bool ids = false;
  bool json = false;
};

std::string quoted(const std::string& piece) { return nlohmann::json(replace_invalid_utf8(piece)).dump(); }

void run(const TokenizeArguments& arguments) {
  const auto vocabulary = Vocabulary::open(arguments.model.path);
  const std::vector<Token> tokens = vocabulary->tokenize(arguments.prompt.read(), !arguments.no_bos, arguments.special);
  if (arguments.json) {
    nlohmann::json pieces = nlohmann::json::array();
    for (const Token token : tokens) pieces.push_back({{"id", token}, {"text", vocabulary->piece(token, true)}});
    print_json({{"count", tokens.size()}, {"tokens", pieces}});
    return;
  }
  for (const Token token : tokens) {
    if (arguments.ids) {
      std::printf("%d\n", token);
    } else {
      std::printf("%7d  %s\n", token, quoted(vocabulary->piece(token, true)).c_str());
    }
  }
  print_note(std::to_string(tokens.size()) + " tokens");
}

}  // namespace

void add_tokenize_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("tokenize", "Show the tokens of a text");
  const auto arguments = std::make_shared<TokenizeArguments>();
  arguments->model.add_path(*command);
  arguments->prompt.add(*command);
  command->add_flag("--no-bos", arguments->no_bos, "Do not put the model's BOS and EOS around the text");
  command->add_flag("--special", arguments->special, "Text of control tokens becomes those tokens");
  command->add_flag("--ids", arguments->ids, "Print the ids only");
  command->add_flag("--json", arguments->json, "Print one JSON document");
  command->callback([arguments] { run(*arguments); });
}

}  // namespace razorkv::cli
