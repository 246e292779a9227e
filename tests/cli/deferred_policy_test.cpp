// Profiles are made when rows are about to be dropped, and not before; what is generated does not depend on when.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/tiny_model.h"
#include "support/temporary_folder.h"

namespace razorkv {
namespace {

using nlohmann::json;

class DeferredPolicyTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const char* old = std::getenv("XDG_CACHE_HOME")) old_ = old;
    setenv("XDG_CACHE_HOME", cache_.path().c_str(), 1);
  }
  void TearDown() override {
    if (old_.empty()) {
      unsetenv("XDG_CACHE_HOME");
    } else {
      setenv("XDG_CACHE_HOME", old_.c_str(), 1);
    }
  }
  /// Path of the one profile in the cache folder; empty: none.
  std::string profile() const {
    const std::string folder = cache_.file("razorkv/profiles");
    if (!std::filesystem::exists(folder)) return {};
    return std::filesystem::directory_iterator(folder)->path().string();
  }
  static json command(const std::string& name, std::vector<std::string> more, const std::string& input = {}) {
    std::vector<std::string> arguments = {
        name, "-m",    test::tiny_command_model(), "-t", "1", "--temp", "0", "--window", "16", "--window-div",
        "0",  "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const test::CommandResult result = test::run_command(arguments, {input, {}, 120.0});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return json::parse(result.out);
  }
  static std::string policy(const json& document) { return document.at("policy").get<std::string>().substr(0, 5); }

  std::string old_;
  test::TemporaryFolder cache_;
};

TEST_F(DeferredPolicyTest, ShortTextsMakeNoProfile) {
  EXPECT_EQ(policy(command("run", {"-p", "hello", "-n", "4"})), "full:");
  EXPECT_EQ(profile(), "");
}

TEST_F(DeferredPolicyTest, ALongAnswerIsTheSameAsUnderThePolicyFromTheStart) {
  const json late = command("run", {"-p", "hello", "-n", "80"});
  EXPECT_EQ(policy(late), "razor");
  ASSERT_NE(profile(), "");
  const json early = command("run", {"-p", "hello", "-n", "80", "--profile", profile()});
  EXPECT_EQ(policy(early), "razor");
  EXPECT_EQ(late.at("tokens"), early.at("tokens"));
  EXPECT_EQ(late.at("statistics").at("kv_row_bytes"), early.at("statistics").at("kv_row_bytes"));
  EXPECT_LT(late.at("statistics").at("kv_row_bytes"), late.at("statistics").at("kv_uncompressed_bytes"));
}

TEST_F(DeferredPolicyTest, ConversationsChangeOverAndBack) {
  const std::string turns = "one\ntwo\n/undo\n/undo\none\n" + std::string(60, 'y') + "\n/undo\nthree\n";
  const std::vector<std::string> chat = {"-n", "5", "--chat-template", "chatml", "--window", "60"};
  const auto talk = [&](std::vector<std::string> more) {
    std::vector<std::string> arguments = {
        "chat", "-m", test::tiny_command_model(), "-t", "1", "--temp", "0", "--window-div", "0", "--json"};
    arguments.insert(arguments.end(), chat.begin(), chat.end());
    arguments.insert(arguments.end(), more.begin(), more.end());
    const test::CommandResult result = test::run_command(arguments, {turns, {}, 120.0});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return json::parse(result.out);
  };
  const json late = talk({});
  EXPECT_EQ(policy(late), "razor");
  ASSERT_NE(profile(), "");
  const json early = talk({"--profile", profile()});
  EXPECT_EQ(late.at("messages"), early.at("messages"));
}

}  // namespace
}  // namespace razorkv
