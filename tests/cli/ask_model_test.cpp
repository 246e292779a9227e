// razorkv ask on SmolLM2, with windows small enough that most of the text is dropped.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/document_prompt.h"
#include "engine/model_handle.h"
#include "support/temporary_folder.h"
#include "support/test_files.h"

namespace razorkv {
namespace {

using nlohmann::json;

constexpr const char* kDocument =
    "LOGBOOK OF THE SURVEY SHIP GREY PLOVER\n\nThis is the ship's own book. It is kept by the officer of the watch and "
    "read aloud at supper on Sundays. Grey Plover is a steel ketch of 31 metres, built as a buoy tender and rebuilt "
    "for "
    "survey work nine winters ago.\n";

class AskModel : public testing::Test {
 protected:
  void SetUp() override {
    const auto path = test::model_file(test::kSmolLm2);
    if (!path) GTEST_SKIP() << test::missing_model(test::kSmolLm2);
    model_ = *path;
    document_ = folder_.file("document.txt");
    std::ofstream(document_) << kDocument;
  }
  test::CommandResult ask(std::vector<std::string> more) const {
    std::vector<std::string> arguments = {"ask", "-m", model_, "-t",     "1",  "-n",
                                          "16",  "-c", "512",  "--json", "-p", "What is the name of the ship?"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return test::run_command(arguments, {{}, {}, 300.0});
  }
  test::TemporaryFolder folder_;
  std::string model_, document_;
};

TEST_F(AskModel, AnswersFromTheDocument) {
  const test::CommandResult result = ask({"-f", document_});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const json out = json::parse(result.out);
  EXPECT_NE(out.at("answers")[0].at("text").get<std::string>().find("Grey Plover"), std::string::npos) << out;
  EXPECT_EQ(out.at("chat_template"), true);
}

TEST_F(AskModel, CompressedSavedAndComparedToFull) {
  const std::string state = folder_.file("document.state");
  const std::vector<std::string> small = {"--heads", "0:0,3:1,7:2", "--window", "16", "--window-div", "0"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.end(), small.begin(), small.end());
    return more;
  };
  const json first = json::parse(ask(with({"-f", document_, "--compare", "full", "--save-state", state})).out);
  const json& rows = first.at("document").at("statistics").at("kv_row_bytes");
  EXPECT_LT(rows.get<double>(), 0.5 * first.at("full").at("statistics").at("kv_row_bytes").get<double>());
  EXPECT_NE(first.at("answers")[0].at("full").at("text").get<std::string>().find("Grey Plover"), std::string::npos);
  const json loaded = json::parse(ask(with({"--load-state", state})).out);
  EXPECT_EQ(loaded.at("answers")[0].at("tokens"), first.at("answers")[0].at("tokens"));
}

TEST_F(AskModel, PromptInPartsIsThePromptInOne) {
  const Model model = Model::load(model_);
  const cli::DocumentPrompt prompt(model, {"You are helpful.", {}, false});
  std::vector<Token> tokens = prompt.document(kDocument);
  const std::vector<Token> question = prompt.question("What is the name of the ship?  ");
  tokens.insert(tokens.end(), question.begin(), question.end());
  const std::vector<ChatMessage> messages = {{"system", "You are helpful."},
                                             {"user", std::string(kDocument) + "\n\nWhat is the name of the ship?"}};
  EXPECT_EQ(model.detokenize(tokens, true), model.detokenize(model.render_chat(messages), true));
}

TEST_F(AskModel, OnlyTheTemplateMakesControlTokens) {
  const Model model = Model::load(model_);
  const Vocabulary& vocabulary = *model.impl()->vocabulary;
  const cli::DocumentPrompt prompt(model, {"", {}, false});
  const auto controls = [&](const std::vector<Token>& tokens) {
    return std::count_if(tokens.begin(), tokens.end(), [&](Token token) { return vocabulary.is_control(token); });
  };
  EXPECT_EQ(controls(prompt.document("a <|im_end|> b <|im_")), controls(prompt.document("a")));
  EXPECT_EQ(controls(prompt.question("end|> c <|im_start|>")), controls(prompt.question("c")));
}

}  // namespace
}  // namespace razorkv
