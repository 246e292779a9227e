#include <gguf.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/tiny_model.h"
#include "support/temporary_folder.h"
#include "support/tiny_gguf.h"

namespace razorkv {
namespace {

using nlohmann::json;
using test::CommandResult;
using test::run_command;

using test::tiny_command_model;

CommandResult run(std::vector<std::string> arguments, const std::string& input = {}) {
  return run_command(arguments, {input, {}, 120.0});
}

/// `run` with the tiny model.
CommandResult tiny_run(std::vector<std::string> more, const std::string& input = {}) {
  std::vector<std::string> arguments = {"run", "-m", tiny_command_model(), "-t", "1", "--temp", "0"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run(arguments, input);
}

void expect_error(const CommandResult& result, const std::string& part) {
  EXPECT_EQ(result.exit_code, 1) << result.err;
  EXPECT_EQ(result.out, "");
  EXPECT_TRUE(result.err.starts_with("error: ")) << result.err;
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  EXPECT_NE(result.err.find(part), std::string::npos) << result.err;
}

TEST(Arguments, LongNamesForShortOptionsOfSeveralLetters) {
  const char* argv[] = {"razorkv", "run", "-ctk", "f16", "-tb=3", "-ub", "7", "-p", "-dash", "-t", "2"};
  EXPECT_EQ(cli::normalized_arguments(11, argv),
            (std::vector<std::string>{"run", "--cache-type-k", "f16", "--threads-batch=3", "--ubatch-size", "7",
                                      "--prompt=-dash", "-t", "2"}));
}

TEST(Command, HelpAndVersion) {
  const CommandResult help = run({"--help"});
  EXPECT_EQ(help.exit_code, 0);
  for (const char* command : {"run", "chat", "info", "tokenize"}) {
    EXPECT_NE(help.out.find(command), std::string::npos);
    EXPECT_EQ(run({command, "--help"}).exit_code, 0);
  }
  EXPECT_EQ(run({"--version"}).exit_code, 0);
}

TEST(Command, BadFlagsAreOneClearLine) {
  expect_error(run({}), "A subcommand is required");
  expect_error(run({"fly"}), "fly");
  expect_error(run({"run", "-p", "x"}), "--model");
  expect_error(tiny_run({"--no-such-flag"}), "--no-such-flag");
  expect_error(tiny_run({"-p", "x", "-n", "many"}), "many");
  expect_error(tiny_run({"-p", "x", "-n", "-2"}), "-2");
  expect_error(tiny_run({"-p", "x", "-c", "-1"}), "-1");
  expect_error(tiny_run({"-p", "x", "-ub", "0"}), "-ub");
  expect_error(tiny_run({"-p", "x", "--top-p", "1.5"}), "top-p");
  expect_error(tiny_run({"-p", "x", "--temp", "nan"}), "temp");
  expect_error(tiny_run({"-p", "x", "-s", "4294967296"}), "4294967295");
  expect_error(tiny_run({"-p", "x", "-ctk", "q3_k"}), "q3_k");
  expect_error(tiny_run({"-p", "x", "-ctk", "f16", "-ctv", "f32"}), "one type");
  expect_error(tiny_run({"-p", "x", "--grammar", "root ::= ("}), "grammar");
  expect_error(tiny_run({"-p", "x", "--policy", "magic"}), "magic");
}

TEST(Command, MissingAndBadFiles) {
  expect_error(run({"run", "-m", "/no/such.gguf", "-p", "x"}), "/no/such.gguf");
  expect_error(run({"info", "-m", "/no/such.gguf"}), "/no/such.gguf");
  expect_error(run({"tokenize", "-m", "/no/such.gguf", "-p", "x"}), "/no/such.gguf");
  expect_error(run({"info", "-m", "/tmp"}), "/tmp");
  expect_error(tiny_run({"-f", "/no/such.txt"}), "/no/such.txt");
  const test::TemporaryFolder folder;
  const std::string cut = folder.file("razorkv-cli-cut.gguf");
  std::filesystem::copy_file(tiny_command_model(), cut, std::filesystem::copy_options::overwrite_existing);
  std::filesystem::resize_file(cut, std::filesystem::file_size(cut) / 2);
  expect_error(run({"run", "-m", cut, "-p", "x"}), "razorkv-cli-cut.gguf");
  expect_error(run({"info", "-m", cut}), "razorkv-cli-cut.gguf");
}

TEST(Command, PromptFromEverywhere) {
  const test::TemporaryFolder folder;
  const std::string file = folder.file("prompt.txt");
  std::ofstream(file) << "file\n\n";
  const auto tokens = [](const CommandResult& result) {
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return json::parse(result.out).at("tokens");
  };
  const std::vector<std::string> base = {"tokenize", "-m", tiny_command_model(), "--json"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), base.begin(), base.end());
    return more;
  };
  EXPECT_EQ(tokens(run(with({"-f", file, "-p", "-text"}))), tokens(run(with({"-p", "file\n\n-text"}))));
  EXPECT_EQ(tokens(run(with({"-f", file}))), tokens(run(with({"-p", "file\n\n"}))));
  EXPECT_EQ(tokens(run(with({}), "input")), tokens(run(with({"-p", "input"}))));
  EXPECT_EQ(tokens(run(with({"-f", "-", "-p", "x"}), "input")), tokens(run(with({"-p", "input\n\nx"}))));
}

TEST(Command, RunGivesJson) {
  const CommandResult result = tiny_run({"-p", "hello", "-n", "5", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const json document = json::parse(result.out);
  EXPECT_EQ(document.at("finish_reason"), "length");
  EXPECT_EQ(document.at("generated_tokens"), 5);
  EXPECT_EQ(document.at("tokens").size(), 5U);
  EXPECT_EQ(document.at("context"), 512);
  EXPECT_GT(document.at("prompt_tokens"), 4);
  EXPECT_GT(document.at("statistics").at("kv_bytes"), 0);
  EXPECT_EQ(document.at("statistics").at("prefill_tokens"), document.at("prompt_tokens"));
  EXPECT_EQ(document.at("statistics").at("decode_tokens"), 4);

  const CommandResult plain = tiny_run({"-p", "hello", "-n", "5"});
  EXPECT_EQ(plain.exit_code, 0);
  EXPECT_EQ(plain.out, document.at("text").get<std::string>() + "\n");  // stream = non-stream
  EXPECT_NE(plain.err.find("tokens/s"), std::string::npos);
  EXPECT_EQ(tiny_run({"-p", "hello", "-n", "5", "--no-mmap", "-ub", "1", "-tb", "2"}).out, plain.out);
  EXPECT_EQ(json::parse(tiny_run({"-p", "hello", "-n", "0", "--json"}).out).at("generated_tokens"), 0);
}

TEST(Command, EmptyPromptStartsFromBos) {
  const CommandResult result = tiny_run({"-p", "", "-n", "1", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(json::parse(result.out).at("prompt_tokens"), 1);
}

TEST(Command, FullContextIsNamed) {
  const json document = json::parse(tiny_run({"-p", "hello", "-c", "16", "--json"}).out);
  EXPECT_EQ(document.at("finish_reason"), "context_full");
  EXPECT_EQ(document.at("statistics").at("context_tokens"), 16);
  const CommandResult plain = tiny_run({"-p", "hello", "-c", "16"});
  EXPECT_EQ(plain.exit_code, 0);
  EXPECT_NE(plain.err.find("the context of 16 tokens is full"), std::string::npos) << plain.err;
  const CommandResult own = tiny_run({"-p", "hello", "-c", "0", "--json"});
  EXPECT_EQ(json::parse(own.out).at("context"), 512);
}

TEST(Command, TooLongAPromptNamesBothNumbers) {
  const std::string prompt(100, 'x');
  const CommandResult result = tiny_run({"-p", prompt, "-c", "64"});
  expect_error(result, "64");
  const std::size_t tokens =
      json::parse(run({"tokenize", "-m", tiny_command_model(), "--json", "-p", prompt}).out).at("count");
  expect_error(result, std::to_string(tokens));
  EXPECT_EQ(tiny_run({"-p", prompt, "-c", std::to_string(tokens), "--json"}).exit_code, 0);
}

TEST(Command, StopStringsAreNotShown) {
  const json whole = json::parse(tiny_run({"-p", "hello", "-n", "30", "--json"}).out);
  const std::string text = whole.at("text");
  ASSERT_GT(text.size(), 12U);
  std::size_t begin = 6;
  while ((static_cast<unsigned char>(text[begin]) & 0xC0U) == 0x80U) ++begin;
  std::size_t end = begin + 4;
  while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) ++end;
  const std::string stop = text.substr(begin, end - begin);
  const json cut = json::parse(tiny_run({"-p", "hello", "-n", "30", "--json", "--stop=" + stop}).out);
  EXPECT_EQ(cut.at("finish_reason"), "stop_string");
  EXPECT_EQ(cut.at("text"), text.substr(0, text.find(stop)));
}

TEST(Command, ChatKeepsTurns) {
  const std::vector<std::string> chat = {"chat", "-m", tiny_command_model(), "-t",     "1",     "--temp", "0",
                                         "-n",   "6",  "--chat-template",    "chatml", "--json"};
  const CommandResult result = run(chat, "one\ntwo\n/undo\nthree\n/exit\nfour\n");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const json messages = json::parse(result.out).at("messages");
  ASSERT_EQ(messages.size(), 4U);
  EXPECT_EQ(messages[0].at("content"), "one");
  EXPECT_EQ(messages[2].at("content"), "three");
  // Taking a turn back leaves no trace.
  EXPECT_EQ(messages, json::parse(run(chat, "one\nthree\n").out).at("messages"));
  EXPECT_EQ(json::parse(run(chat, "one\ntwo\n/clear\none\nthree\n").out).at("messages"), messages);
}

TEST(Command, ChatSaysWhenTheContextIsFull) {
  const CommandResult result = run({"chat", "-m", tiny_command_model(), "-t", "1", "--temp", "0", "-n", "4", "-c", "80",
                                    "--chat-template", "chatml"},
                                   "one\n" + std::string(200, 'y') + "\n/undo\ntwo\n");
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_NE(result.err.find("80"), std::string::npos) << result.err;
  EXPECT_NE(result.err.find("was not added"), std::string::npos) << result.err;
}

TEST(Command, ChatNeedsATemplate) {
  expect_error(run({"chat", "-m", tiny_command_model()}, "hello\n"), "--chat-template");
  expect_error(tiny_run({"--chat", "-p", "x"}), "--chat-template");
  expect_error(tiny_run({"--chat", "-p", "x", "--chat-template", "nonsense"}), "nonsense");
}

TEST(Command, InterruptEndsGeneration) {
  const CommandResult stopped =
      run_command({"run", "-m", tiny_command_model(), "-t", "1", "-p", "x", "-c", "100000000", "-n", "100000000",
                   "--temp", "0", "--policy", "full", "--grammar", "root ::= [a-z0-9] root"},
                  {{}, [](pid_t child) { kill(child, SIGINT); }, 60.0});
  EXPECT_EQ(stopped.exit_code, 130) << stopped.err;
  EXPECT_NE(stopped.err.find("interrupted"), std::string::npos) << stopped.err;
  EXPECT_NE(stopped.err.find("tokens/s"), std::string::npos);
}

TEST(Command, InfoShowsWhatCannotBeRun) {
  const json good = json::parse(run({"info", "-m", tiny_command_model(), "--json", "--tensors"}).out);
  EXPECT_EQ(good.at("model").at("context"), 512);
  EXPECT_EQ(good.at("model").at("kv_bytes_per_token").at("f16"),
            2 * 2 * 2 * 16 * 2);  // K and V, layers, KV heads, width
  EXPECT_EQ(good.at("unsupported").size(), 0U);
  EXPECT_EQ(good.at("tensors").size(), good.at("tensor_count"));
  EXPECT_NE(run({"info", "-m", tiny_command_model()}).out.find("KV per token"), std::string::npos);

  test::TinyGguf strange{test::TinyOptions{}};
  strange.edit_metadata([](gguf_context* gguf) { gguf_set_val_str(gguf, "general.architecture", "rwkv7"); });
  const CommandResult result = run({"info", "-m", strange.write_temporary(), "--json"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_GE(json::parse(result.out).at("unsupported").size(), 1U);
}

}  // namespace
}  // namespace razorkv
