// razorkv ask: read and compress a document once, answer question after question from the compressed cache.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include "base/text_file.h"
#include "cli/ask_report.h"
#include "cli/commands.h"
#include "cli/common_options.h"
#include "cli/document_prompt.h"
#include "cli/document_session.h"
#include "cli/interrupt.h"
#include "cli/question_source.h"
#include "cli/report.h"
#include "razorkv/error.h"

namespace razorkv::cli {
namespace {

struct AskArguments {
  ModelArguments model;
  SessionArguments session;
  PolicyArguments policy;
  SamplingArguments sampling;
  QuestionSource questions;
  DocumentPromptOptions prompt{"You are a helpful assistant.", {}, false};
  std::string file;
  std::string save_state;
  std::string load_state;
  std::string compare;
  bool json = false;
};

/// Room that is set aside for questions when a policy is chosen by the length of what is to come.
constexpr std::int64_t kQuestionTokens = 1024;

void check(const AskArguments& arguments) {
  if (arguments.file.empty() == arguments.load_state.empty()) {
    throw InvalidArgument("give a document with -f FILE or a saved one with --load-state FILE, one of them");
  }
  if (!arguments.compare.empty() && !arguments.load_state.empty()) {
    throw InvalidArgument("--compare reads the document anew: give it with -f FILE instead of --load-state");
  }
}

/// Everything that answers, and what it has answered.
class Asking {
 public:
  explicit Asking(AskArguments& arguments)
      : arguments_(arguments),
        options_(arguments.session.options()),
        params_(arguments.sampling.resolved()),
        model_(arguments.model.load()),
        prompt_(model_, arguments.prompt) {
    const TokenSampler bad_parameters_show_before_reading(model_, params_);
    if (options_.context == 0) options_.context = model_.info().context;
    generate_ = {arguments.sampling.count, arguments.sampling.stops, {}};
  }

  void prepare() {
    std::vector<Token> document;
    if (!loaded()) document = document_tokens();
    InterruptScope interrupt;
    const Policy policy =
        policy_of_file() ? Policy::full(model_) : arguments_.policy.make(model_, options_, policy_tokens(document));
    compressed_.emplace(model_, options_, policy);
    read(*compressed_, document);
    if (!arguments_.save_state.empty()) save();
    if (!arguments_.compare.empty()) {
      note("reading the document again, uncompressed");
      full_.emplace(model_, options_, Policy::full(model_));
      read(*full_, document);
    }
    note("policy: " + compressed_->session().policy().description());
  }

  /// False when an interrupt ends the whole.
  bool ask(const std::string& question) {
    if (!arguments_.json && !arguments_.questions.interactive()) std::printf("> %s\n", question.c_str());
    nlohmann::json entry = {{"question", question}};
    bool complete = true;
    try {
      const std::vector<Token> tokens = prompt_.question(question);
      complete = ask_one(*compressed_, full_ ? "compressed: " : "", question, tokens, entry);
      if (complete && full_) complete = ask_one(*full_, "full: ", question, tokens, entry["full"]);
    } catch (const ContextFull& full) {
      entry["error"] = full.what();
      failed_ = true;
      print_note(std::string("this question was not answered: ") + full.what());
    }
    answers_.push_back(std::move(entry));
    return complete;
  }

  void report() {
    if (arguments_.json) {
      nlohmann::json out = {{"model", model_.info().name},
                            {"policy", compressed_->session().policy().description()},
                            {"context", options_.context},
                            {"threads", compressed_->session().options().threads},
                            {"chat_template", prompt_.has_template()},
                            {"document", document_json(*compressed_, loaded())},
                            {"answers", answers_}};
      if (full_) out["full"] = document_json(*full_, false);
      print_json(out);
      return;
    }
    print_note(document_lines(*compressed_, loaded()));
    if (full_) print_note("uncompressed: " + document_lines(*full_, false));
  }

  bool failed() const { return failed_; }

 private:
  bool loaded() const { return arguments_.file.empty(); }
  bool policy_of_file() const { return loaded() && !arguments_.policy.given(); }

  void note(const std::string& line) const {
    if (!arguments_.json) print_note(line);
  }

  std::vector<Token> document_tokens() const {
    std::vector<Token> tokens = prompt_.document(read_text_file(arguments_.file));
    const auto count = static_cast<std::int64_t>(tokens.size());
    if (count >= options_.context) {
      throw ContextFull("the document has " + std::to_string(count) + " tokens, the context holds " +
                        std::to_string(options_.context) +
                        ", question and answer included; use a longer context (-c) or a shorter document");
    }
    return tokens;
  }

  /// Most tokens that the policy is made for. A state file is made for all of the context, so that it fits a later run.
  std::int64_t policy_tokens(const std::vector<Token>& document) const {
    if (loaded() || !arguments_.save_state.empty() || generate_.count < 0) return options_.context;
    return std::min(options_.context, static_cast<std::int64_t>(document.size()) + kQuestionTokens + generate_.count);
  }

  void read(DocumentSession& session, const std::vector<Token>& document) {
    if (loaded()) {
      session.load(arguments_.load_state, policy_of_file());
    } else {
      session.read(document);
    }
  }

  void save() {
    try {
      compressed_->session().save(arguments_.save_state);
    } catch (const FileError& error) {  // reading took long: its answers are still worth having
      failed_ = true;
      print_note(std::string("the state was not saved: ") + error.what());
    }
  }

  bool ask_one(DocumentSession& session, const char* label, const std::string& question,
               const std::vector<Token>& tokens, nlohmann::json& entry) {
    InterruptScope interrupt(&session.session().cancel_flag());
    if (!arguments_.json) std::fputs(label, stdout);
    try {
      const Answer answer = session.answer(question, tokens, params_, generate_, [&](std::string_view text) {
        if (arguments_.json) return;
        std::fwrite(text.data(), 1, text.size(), stdout);
        std::fflush(stdout);
      });
      entry.update(answer_json(answer));
      if (!arguments_.json) std::fputc('\n', stdout);
      note(answer_line(answer));
      if (answer.generated.reason == FinishReason::context_full) {
        note("stopped: the context of " + std::to_string(options_.context) + " tokens is full (-c sets it)");
      }
    } catch (const Cancelled&) {
      entry["finish_reason"] = finish_reason_name(FinishReason::interrupted);
      if (!arguments_.json) std::fputc('\n', stdout);
    }
    const bool interrupted = InterruptScope::requested();
    if (interrupted) note("stopped: interrupted");
    interrupt.clear();
    return !interrupted;
  }

  AskArguments& arguments_;
  SessionOptions options_;
  SamplingParams params_;
  Model model_;
  DocumentPrompt prompt_;
  GenerateOptions generate_;
  std::optional<DocumentSession> compressed_;
  std::optional<DocumentSession> full_;
  nlohmann::json answers_ = nlohmann::json::array();
  bool failed_ = false;
};

void run(AskArguments& arguments) {
  check(arguments);
  arguments.questions.open();
  Asking asking(arguments);
  try {
    asking.prepare();
  } catch (const Cancelled&) {
    print_note("stopped: interrupted before the document was read");
    throw ExitWith{kExitInterrupted};
  }
  bool interrupted = false;
  while (const std::optional<std::string> question = arguments.questions.next()) {
    interrupted = !asking.ask(*question);
    if (interrupted && !arguments.questions.interactive()) break;
  }
  asking.report();
  if (interrupted) throw ExitWith{kExitInterrupted};
  if (asking.failed()) throw ExitWith{kExitError};
}

}  // namespace

void add_ask_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("ask", "Read a document once, compress it, and answer questions about it");
  const auto arguments = std::make_shared<AskArguments>();
  arguments->model.add(*command);
  command->add_option("-f,--file", arguments->file, "Document, a text file")->type_name("FILE");
  arguments->questions.add(*command);
  command->add_option("--save-state", arguments->save_state, "Write the compressed document to this file")
      ->type_name("FILE");
  command
      ->add_option("--load-state", arguments->load_state, "Take a saved document, under the policy it was saved under")
      ->type_name("FILE");
  command->add_option("--compare", arguments->compare, "full: also answer from the uncompressed cache")
      ->check(CLI::IsMember({"full"}));
  command->add_option("--system", arguments->prompt.system, "-sys: system message")->capture_default_str();
  command->add_option("--chat-template", arguments->prompt.chat_template,
                      "Use this known template instead of the model's");
  command->add_flag("--raw", arguments->prompt.raw, "No chat template: document, \"Question:\", \"Answer:\"");
  arguments->sampling.count = 512;
  arguments->sampling.params.temperature = 0.0F;
  arguments->sampling.add(*command);
  arguments->session.add(*command);
  arguments->policy.add(*command);
  command->add_flag("--json", arguments->json, "Print one JSON document at the end instead of the answers");
  command->callback([arguments] { run(*arguments); });
}

}  // namespace razorkv::cli
