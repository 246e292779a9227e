// razorkv run: one prompt, one answer.
#include <cstdio>
#include <memory>
#include <string>

#include "cli/commands.h"
#include "cli/common_options.h"
#include "cli/deferred_policy.h"
#include "cli/generate.h"
#include "cli/interrupt.h"
#include "cli/prompt_source.h"
#include "cli/report.h"
#include "engine/model_handle.h"
#include "model/chat_template.h"
#include "razorkv/error.h"

namespace razorkv::cli {
namespace {

struct RunArguments {
  ModelArguments model;
  SessionArguments session;
  PolicyArguments policy;
  SamplingArguments sampling;
  PromptArguments prompt;
  bool chat = false;
  std::string system;
  std::string chat_template;
  bool special = false;
  bool json = false;
};

std::vector<Token> prompt_tokens(const Model& model, const RunArguments& arguments) {
  const std::string text = arguments.prompt.read();
  if (!arguments.chat) {
    if (!arguments.system.empty()) throw InvalidArgument("--system needs --chat");
    std::vector<Token> tokens = model.tokenize(text, true, arguments.special);
    if (tokens.empty()) throw InvalidArgument("the prompt is empty; give at least one character");
    return tokens;
  }
  if (arguments.special) throw InvalidArgument("--special works without --chat only");
  std::vector<ChatMessage> messages;
  if (!arguments.system.empty()) messages.push_back({"system", arguments.system});
  messages.push_back({"user", text});
  return ChatTemplate(model.impl()->vocabulary, arguments.chat_template).render(messages);
}

void check_length(std::size_t tokens, std::int64_t context) {
  if (static_cast<std::int64_t>(tokens) > context) {
    throw ContextFull("the prompt has " + std::to_string(tokens) + " tokens, the context holds " +
                      std::to_string(context) + "; use a longer context (-c) or a shorter prompt");
  }
}

std::string note(const Generated& generated, const Session& session) {
  if (generated.reason == FinishReason::context_full) {
    return "stopped: the context of " + std::to_string(session.options().context) + " tokens is full (-c sets it)";
  }
  if (generated.reason == FinishReason::interrupted) return "stopped: interrupted";
  return {};
}

void run(const RunArguments& arguments) {
  const SessionOptions options = arguments.session.options();
  const SamplingParams params = arguments.sampling.resolved();
  const Model model = arguments.model.load();
  TokenSampler sampler(model, params);
  const std::vector<Token> prompt = prompt_tokens(model, arguments);
  const std::int64_t context = options.context > 0 ? options.context : model.info().context;
  check_length(prompt.size(), context);

  const std::int64_t count = arguments.sampling.count;
  const auto prompt_size = static_cast<std::int64_t>(prompt.size());
  const std::int64_t most = count >= 0 && count < context - prompt_size ? prompt_size + count : context;
  DeferredPolicy policy(arguments.policy, model, options, most);
  Session session(model, options, policy.initial());
  InterruptScope interrupt(&session.cancel_flag());
  try {
    policy.before_feeding(session, prompt_size);
    feed_prompt(session, prompt);
  } catch (const Cancelled&) {
    print_note("stopped: interrupted while reading the prompt");
    throw ExitWith{kExitInterrupted};
  }
  policy.end_prompt(session);
  sampler.accept_prompt(prompt);

  const GenerateOptions generate_options{count, arguments.sampling.stops, [&](Session& growing) {
                                           policy.before_feeding(growing, 1);
                                           policy.end_prompt(growing);
                                         }};
  const Generated generated = generate(session, sampler, generate_options, [&](std::string_view text) {
    if (arguments.json) return;
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
  });
  const SessionStatistics statistics = session.statistics();
  if (arguments.json) {
    print_json({{"model", model.info().name},
                {"text", generated.text},
                {"finish_reason", finish_reason_name(generated.reason)},
                {"prompt_tokens", prompt.size()},
                {"generated_tokens", generated.tokens.size()},
                {"tokens", generated.tokens},
                {"context", session.options().context},
                {"threads", session.options().threads},
                {"policy", session.policy().description()},
                {"statistics", statistics_json(statistics)}});
  } else {
    std::fputc('\n', stdout);
    if (const std::string line = note(generated, session); !line.empty()) print_note(line);
    print_note(closing_line(statistics));
    print_note("policy: " + session.policy().description());
  }
  if (generated.reason == FinishReason::interrupted) throw ExitWith{kExitInterrupted};
}

}  // namespace

void add_run_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("run", "Continue a prompt, or answer it (--chat)");
  const auto arguments = std::make_shared<RunArguments>();
  arguments->model.add(*command);
  arguments->prompt.add(*command);
  command->add_flag("--chat", arguments->chat, "Put the prompt into the model's chat template as a user message");
  command->add_option("--system", arguments->system, "-sys: system message for --chat");
  command->add_option("--chat-template", arguments->chat_template, "Use this known template instead of the model's");
  command->add_flag("--special", arguments->special, "Text of control tokens in the prompt becomes those tokens");
  arguments->sampling.add(*command);
  arguments->session.add(*command);
  arguments->policy.add(*command);
  command->add_flag("--json", arguments->json, "Print one JSON document instead of the text");
  command->callback([arguments] { run(*arguments); });
}

}  // namespace razorkv::cli
