// razorkv ask on a random model: what it accepts, refuses, saves and reports.
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "cli/command.h"
#include "cli/tiny_model.h"
#include "support/temporary_folder.h"

namespace razorkv {
namespace {

using nlohmann::json;
using test::CommandResult;
using test::run_command;
using test::tiny_command_model;

/// A file of this process, since tests run side by side.
std::string text_file(const std::string& name, const std::string& content) {
  static const test::TemporaryFolder folder;
  const std::string path = folder.file(name);
  std::ofstream(path, std::ios::binary) << content;
  return path;
}

/// About 260 tokens with the prompt around it.
std::string document_file() {
  std::string text;
  for (int i = 0; i < 20; ++i) text += "line " + std::to_string(i * 37) + "\n";
  return text_file("document.txt", text);
}

/// Options of `more` come in place of the usual ones.
CommandResult ask(const std::vector<std::string>& more, const std::string& input = {}) {
  const std::vector<std::pair<std::string, std::string>> usual = {
      {"-m", tiny_command_model()}, {"-t", "1"},        {"-n", "6"},
      {"--heads", "0:0"},           {"--window", "16"}, {"--window-div", "0"},
      {"--chat-template", "chatml"}};
  std::vector<std::string> arguments = {"ask"};
  for (const auto& [name, value] : usual) {
    if (std::find(more.begin(), more.end(), name) == more.end()) arguments.insert(arguments.end(), {name, value});
  }
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run_command(arguments, {input, {}, 120.0});
}

json answers(const CommandResult& result) {
  EXPECT_EQ(result.exit_code, 0) << result.err;
  json texts = json::array();
  const json out = json::parse(result.out);
  for (const json& entry : out.at("answers")) texts.push_back(entry.at("tokens"));
  return texts;
}

void expect_error(const CommandResult& result, const std::string& part) {
  EXPECT_EQ(result.exit_code, 1) << result.err;
  EXPECT_TRUE(result.err.starts_with("error: ")) << result.err;
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  EXPECT_NE(result.err.find(part), std::string::npos) << result.err;
}

TEST(Ask, QuestionsFromEverywhereGetTheSameAnswers) {
  const std::string document = document_file();
  const std::string questions = text_file("questions.txt", "one?\n\ntwo?\r\n");
  const json first = answers(ask({"-f", document, "--json", "-p", "one?", "-p", "two?"}));
  ASSERT_EQ(first.size(), 2U);
  EXPECT_EQ(first, answers(ask({"-f", document, "--json", "--questions", questions})));
  EXPECT_EQ(first, answers(ask({"-f", document, "--json"}, "one?\n\ntwo?\n/exit\nthree?\n")));
}

TEST(Ask, AnAnswerDoesNotDependOnTheQuestionsBefore) {
  const std::string document = document_file();
  const json alone = answers(ask({"-f", document, "--json", "-p", "two?"}));
  const json later = answers(ask({"-f", document, "--json", "-p", "one?", "-p", "two?", "-p", "one?"}));
  EXPECT_EQ(later[1], alone[0]);
  EXPECT_EQ(later[2], later[0]);
}

TEST(Ask, SavedDocumentsAnswerTheSame) {
  const test::TemporaryFolder folder;
  const std::string state = folder.file("document.state");
  const json before =
      answers(ask({"-f", document_file(), "--json", "-p", "one?", "-p", "two?", "--save-state", state}));
  const CommandResult loaded = ask({"--load-state", state, "--json", "-p", "one?", "-p", "two?"});
  EXPECT_EQ(answers(loaded), before);
  EXPECT_EQ(json::parse(loaded.out).at("document").at("loaded"), true);
  expect_error(ask({"--load-state", state, "--window", "17", "-p", "one?"}), "policy");
  EXPECT_EQ(answers(test::run_command({"ask", "-m", tiny_command_model(), "-t", "1", "-n", "6", "--chat-template",
                                       "chatml", "--load-state", state, "--json", "-p", "one?", "-p", "two?"})),
            before);
  std::filesystem::resize_file(state, std::filesystem::file_size(state) / 2);
  expect_error(ask({"--load-state", state, "-p", "one?"}), "cut short");
}

TEST(Ask, ReportsMemoryAndSpeedOfBoth) {
  const CommandResult result = ask({"-f", document_file(), "--json", "-p", "one?", "--compare", "full"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const json out = json::parse(result.out);
  const json& compressed = out.at("document").at("statistics");
  const json& full = out.at("full").at("statistics");
  EXPECT_EQ(compressed.at("context_tokens"), full.at("context_tokens"));
  EXPECT_LT(compressed.at("kv_row_bytes"), full.at("kv_row_bytes"));
  EXPECT_EQ(compressed.at("kv_uncompressed_bytes"), full.at("kv_row_bytes"));
  EXPECT_GT(out.at("document").at("memory_after_compression").at("resident"), 0);
  EXPECT_EQ(out.at("answers")[0].at("full").at("statistics").at("decode_tokens"), 5);
  EXPECT_NE(out.at("policy").get<std::string>().find("1 of 4 KV heads"), std::string::npos) << out.at("policy");

  const CommandResult plain = ask({"-f", document_file(), "-p", "one?", "--compare", "full"});
  EXPECT_NE(plain.out.find("compressed: "), std::string::npos);
  EXPECT_NE(plain.out.find("full: "), std::string::npos);
  for (const char* part : {"prefill", "compressed in", "page slack", "resident memory", "tokens/s", "policy: razor"}) {
    EXPECT_NE(plain.err.find(part), std::string::npos) << part << "\n" << plain.err;
  }
}

TEST(Ask, KeepingAllHeadsAnswersAsTheFullCache) {
  const json out =
      json::parse(ask({"-f", document_file(), "--json", "-p", "one?", "--compare", "full", "--heads", "all"}).out);
  EXPECT_EQ(out.at("answers")[0].at("tokens"), out.at("answers")[0].at("full").at("tokens"));
}

TEST(Ask, ShortDocumentsNeedNoProfile) {
  // Nothing would be dropped, so the missing profile is not missed.
  const CommandResult result = ask({"-f", document_file(), "-p", "one?", "--window", "511", "--heads", "wide",
                                    "--profile", "/no/such/profile.json"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.err.find("policy: full"), std::string::npos) << result.err;
}

TEST(Ask, BudgetsAreMetAndSaid) {
  const CommandResult result =
      ask({"-f", document_file(), "-p", "one?", "--kv-budget-mb", "1", "--heads", "0:0", "--json"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_LE(json::parse(result.out).at("document").at("statistics").at("kv_row_bytes"), 1 << 20);
}

TEST(Ask, ControlTextInDocumentAndQuestionStaysText) {
  const std::string document = text_file("control.txt", "a <|im_end|> b </s> c\n");
  const CommandResult result = ask({"-f", document, "--json", "-p", "</s> what?"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
}

TEST(Ask, TooLongADocumentNamesBothNumbers) {
  const CommandResult result = ask({"-f", document_file(), "-p", "one?", "-c", "100"});
  expect_error(result, "100");
  const json whole = json::parse(ask({"-f", document_file(), "-p", "one?", "--json"}).out);
  expect_error(result, std::to_string(whole.at("document").at("tokens").get<int>()));
}

TEST(Ask, AQuestionThatDoesNotFitLeavesTheOthers) {
  const CommandResult result = ask({"-f", document_file(), "--json", "-p", std::string(400, 'q'), "-p", "one?"});
  EXPECT_EQ(result.exit_code, 1);
  const json out = json::parse(result.out);
  EXPECT_NE(out.at("answers")[0].at("error").get<std::string>().find("512"), std::string::npos);
  EXPECT_EQ(out.at("answers")[1].at("tokens").size(), 6U);
}

TEST(Ask, AnswersAlsoWhereTheStateCannotBeSaved) {
  const CommandResult result =
      ask({"-f", document_file(), "-p", "one?", "--save-state", "/no/such/folder/x", "--json"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.err.find("/no/such/folder"), std::string::npos) << result.err;
  EXPECT_EQ(json::parse(result.out).at("answers")[0].at("tokens").size(), 6U);
}

TEST(Ask, BadArgumentsAreOneClearLine) {
  const std::string document = document_file();
  expect_error(ask({"-p", "one?"}), "--load-state");
  expect_error(ask({"-f", document, "--load-state", "x", "-p", "one?"}), "one of them");
  expect_error(ask({"--load-state", "/no/such.state", "-p", "one?"}), "/no/such.state");
  expect_error(ask({"-f", "/no/such.txt", "-p", "one?"}), "/no/such.txt");
  expect_error(ask({"-f", text_file("empty.txt", ""), "-p", "one?"}), "empty");
  expect_error(ask({"-f", text_file("blank.txt", " \n\t\n"), "-p", "one?"}), "empty");
  expect_error(ask({"-f", document, "-p", " "}), "empty");
  expect_error(ask({"-f", document, "--questions", "/no/such.txt"}), "/no/such.txt");
  expect_error(ask({"-f", document, "--questions", text_file("none.txt", "\n\n")}), "no question");
  expect_error(ask({"-f", document, "-p", "one?", "--policy", "magic"}), "magic");
  expect_error(ask({"-f", document, "-p", "one?", "--heads", "9:9"}), "9:9");
  expect_error(ask({"-f", document, "-p", "one?", "--compare", "half"}), "half");
  expect_error(ask({"-f", document, "-p", "one?", "--prefill", "sideways"}), "sideways");
}

}  // namespace
}  // namespace razorkv
