#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "cli/command.h"
#include "support/test_files.h"

namespace razorkv {
namespace {

using nlohmann::json;
using test::run_command;

class CommandModel : public testing::Test {
 protected:
  void SetUp() override {
    const auto path = test::model_file(test::kSmolLm2);
    if (!path) GTEST_SKIP() << test::missing_model(test::kSmolLm2);
    path_ = *path;
  }
  std::string path_;
};

TEST_F(CommandModel, AnswersAQuestion) {
  const test::CommandResult result = run_command({"run", "-m", path_, "--chat", "-p", "What is the capital of France?",
                                                  "--temp", "0", "-n", "30", "-c", "256", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const json document = json::parse(result.out);
  EXPECT_NE(document.at("text").get<std::string>().find("Paris"), std::string::npos) << document;
  EXPECT_EQ(document.at("finish_reason"), "stop");
}

TEST_F(CommandModel, ChatRemembersTheTurnBefore) {
  const test::CommandResult result =
      run_command({"chat", "-m", path_, "--temp", "0", "-n", "40", "-c", "512", "--json"},
                  {"What is the capital of France?\nAnd of Germany?\n", {}, 120.0});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const json messages = json::parse(result.out).at("messages");
  ASSERT_EQ(messages.size(), 4U);
  EXPECT_NE(messages[3].at("content").get<std::string>().find("Berlin"), std::string::npos) << messages;
}

TEST_F(CommandModel, GrammarHolds) {
  const test::CommandResult result = run_command({"run", "-m", path_, "--chat", "-p", "Is water wet?", "-n", "10", "-c",
                                                  "128", "--json", "--grammar", "root ::= \"maybe\" | \"never\""});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const std::string text = json::parse(result.out).at("text");
  EXPECT_TRUE(text == "maybe" || text == "never") << text;
}

}  // namespace
}  // namespace razorkv
