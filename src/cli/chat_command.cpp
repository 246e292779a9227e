// razorkv chat: a conversation in the terminal.
#include <unistd.h>

#include <cstdio>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/commands.h"
#include "cli/common_options.h"
#include "cli/deferred_policy.h"
#include "cli/generate.h"
#include "cli/interrupt.h"
#include "cli/report.h"
#include "engine/model_handle.h"
#include "model/chat_template.h"
#include "razorkv/error.h"

namespace razorkv::cli {
namespace {

struct ChatArguments {
  ModelArguments model;
  SessionArguments session;
  PolicyArguments policy;
  SamplingArguments sampling;
  std::string system;
  std::string chat_template;
  bool json = false;
};

constexpr const char* kHelp = "/undo takes the last turn back, /clear forgets all, /exit or Ctrl-D ends";

/// The conversation and the session that holds it. A turn that throws leaves both as they were.
class Conversation {
 public:
  Conversation(const ChatArguments& arguments, const Model& model, const SessionOptions& options,
               DeferredPolicy& policy, const SamplingParams& params)
      : arguments_(arguments),
        chat_(model.impl()->vocabulary, arguments.chat_template),
        params_(params),
        policy_(policy),
        session_(model, options, policy.initial()) {
    clear();
  }

  Session& session() { return session_; }
  const std::vector<ChatMessage>& messages() const { return messages_; }

  void clear() {
    session_.clear();
    messages_.clear();
    turns_.clear();
    pending_.reset();
    if (!arguments_.system.empty()) messages_.push_back({"system", arguments_.system});
  }

  /// False when there is no turn to take back.
  bool undo() {
    if (turns_.empty()) return false;
    back_to(turns_.back());
    turns_.pop_back();
    return true;
  }

  Generated turn(const std::string& text, const std::function<void(std::string_view)>& show) {
    const Turn before{session_.snapshot(), messages_, pending_};
    try {
      messages_.push_back({"user", text});
      const std::vector<Token> fed = feed_user_turn();
      Generated answer = generate_answer(fed, show);
      messages_.push_back({"assistant", answer.text});
      turns_.push_back(before);
      return answer;
    } catch (...) {
      back_to(before);
      throw;
    }
  }

 private:
  struct Turn {
    Snapshot snapshot;
    std::vector<ChatMessage> messages;
    std::optional<Token> pending;
  };

  void back_to(const Turn& turn) {
    session_.restore(turn.snapshot);
    messages_ = turn.messages;
    pending_ = turn.pending;
  }

  std::vector<Token> feed_user_turn() {
    const bool first = session_.logits().empty();
    std::optional<std::vector<Token>> more;
    if (!first) more = chat_.continuation(messages_);
    std::vector<Token> tokens;
    if (more) {
      tokens = *std::move(more);
      if (pending_) tokens.insert(tokens.begin(), *pending_);
    } else {
      session_.clear();
      tokens = chat_.render(messages_);
    }
    policy_.before_feeding(session_, static_cast<std::int64_t>(tokens.size()));
    feed_prompt(session_, tokens);
    pending_.reset();
    policy_.end_prompt(session_);
    return tokens;
  }

  Generated generate_answer(const std::vector<Token>& fed, const std::function<void(std::string_view)>& show) {
    TokenSampler sampler(session_.model(), params_);
    sampler.accept_prompt(fed);
    const Snapshot start = session_.snapshot();
    const GenerateOptions options{arguments_.sampling.count, arguments_.sampling.stops, [&](Session& session) {
                                    policy_.before_feeding(session, 1);
                                    policy_.end_prompt(session);
                                  }};
    Generated answer = generate(session_, sampler, options, show);
    pending_ = answer.pending;
    if (answer.reason == FinishReason::stop_string) {
      // The context shall hold what was shown, not the stop string.
      const std::vector<Token> shown = session_.model().tokenize(answer.text, false, false);
      session_.restore(start);
      if (!shown.empty()) session_.feed(shown);
      pending_.reset();
    }
    return answer;
  }

  const ChatArguments& arguments_;
  ChatTemplate chat_;
  SamplingParams params_;
  DeferredPolicy& policy_;
  Session session_;
  std::vector<ChatMessage> messages_;
  std::vector<Turn> turns_;
  std::optional<Token> pending_;  // shown, but not fed yet
};

bool read_line(std::string& line, bool terminal) {
  if (terminal) {
    std::fputs("> ", stderr);
    std::fflush(stderr);
  }
  return static_cast<bool>(std::getline(std::cin, line));
}

void run(const ChatArguments& arguments) {
  const SessionOptions options = arguments.session.options();
  const SamplingParams params = arguments.sampling.resolved();
  const Model model = arguments.model.load();
  const std::int64_t context = options.context > 0 ? options.context : model.info().context;
  DeferredPolicy policy(arguments.policy, model, options, context);
  TokenSampler check(model, params);  // bad parameters are found before the first question
  Conversation conversation(arguments, model, options, policy, params);
  InterruptScope interrupt(&conversation.session().cancel_flag());

  const bool terminal = isatty(STDIN_FILENO) != 0;
  if (terminal) print_note(std::string(kHelp));
  std::string line;
  FinishReason last = FinishReason::end_of_generation;
  while (read_line(line, terminal)) {
    if (line.empty()) continue;
    if (line == "/exit" || line == "/quit") break;
    if (line == "/clear") {
      conversation.clear();
      continue;
    }
    if (line == "/undo") {
      if (!conversation.undo()) print_note("there is no turn to take back");
      continue;
    }
    if (line == "/help") {
      print_note(std::string(kHelp));
      continue;
    }
    try {
      const Generated answer = conversation.turn(line, [&](std::string_view text) {
        if (arguments.json) return;
        std::fwrite(text.data(), 1, text.size(), stdout);
        std::fflush(stdout);
      });
      last = answer.reason;
      if (!arguments.json) std::fputc('\n', stdout);
      if (answer.reason == FinishReason::context_full) {
        print_note("stopped: the context of " + std::to_string(conversation.session().options().context) +
                   " tokens is full (-c sets it); /undo or /clear makes room");
      }
    } catch (const ContextFull& full) {
      last = FinishReason::context_full;
      print_note(std::string(full.what()) + "; this turn was not added, /undo or /clear makes room");
    } catch (const Cancelled&) {
      last = FinishReason::interrupted;
      print_note("stopped: interrupted; this turn was not added");
    }
    if (InterruptScope::requested()) {
      if (!terminal) break;
      interrupt.clear();
    }
  }
  const bool interrupted = InterruptScope::requested();
  const SessionStatistics statistics = conversation.session().statistics();
  if (arguments.json) {
    nlohmann::json messages = nlohmann::json::array();
    for (const ChatMessage& message : conversation.messages()) {
      messages.push_back({{"role", message.role}, {"content", message.content}});
    }
    print_json({{"model", model.info().name},
                {"messages", messages},
                {"finish_reason", finish_reason_name(last)},
                {"context", conversation.session().options().context},
                {"policy", conversation.session().policy().description()},
                {"statistics", statistics_json(statistics)}});
  } else {
    print_note(closing_line(statistics));
    print_note("policy: " + conversation.session().policy().description());
  }
  if (interrupted) throw ExitWith{kExitInterrupted};
}

}  // namespace

void add_chat_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("chat", std::string("Talk with the model, a line at a time; ") + kHelp);
  const auto arguments = std::make_shared<ChatArguments>();
  arguments->model.add(*command);
  command->add_option("--system", arguments->system, "-sys: system message");
  command->add_option("--chat-template", arguments->chat_template, "Use this known template instead of the model's");
  arguments->sampling.add(*command);
  arguments->session.add(*command);
  arguments->policy.add(*command);
  command->add_flag("--json", arguments->json, "Print one JSON document at the end instead of the answers");
  command->callback([arguments] { run(*arguments); });
}

}  // namespace razorkv::cli
