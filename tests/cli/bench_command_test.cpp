#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/tiny_model.h"
#include "support/temporary_folder.h"

namespace razorkv {
namespace {

test::CommandResult bench(std::vector<std::string> more) {
  std::vector<std::string> arguments = {"bench", "-t", "1"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return test::run_command(arguments, {{}, {}, 120.0});
}

TEST(BenchCommand, MeasuresSeveralDepths) {
  const test::CommandResult result =
      bench({"-m", test::tiny_command_model(), "-p", "8,16", "-n", "2", "-d", "0,100", "-r", "2", "-o", "json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const nlohmann::json tests = nlohmann::json::parse(result.out).at("tests");
  ASSERT_EQ(tests.size(), 6U);
  EXPECT_EQ(tests[1].at("test"), "pp16");
  EXPECT_EQ(tests[5].at("test"), "tg2 @ d100");
  EXPECT_EQ(tests[5].at("samples_ts").size(), 2U);
}

TEST(BenchCommand, PlotsSpeedAgainstDepth) {
  const test::TemporaryFolder folder;
  const std::string path = folder.file("speed.svg");
  const test::CommandResult result =
      bench({"-m", test::tiny_command_model(), "-p", "0", "-n", "2", "-d", "0,100", "-r", "1", "--plot", path});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(test::read_bytes(path).find("at 100:"), std::string::npos);
}

TEST(BenchCommand, ProductsOfAModel) {
  const test::CommandResult result = bench({"--matmul", "-m", test::tiny_command_model(), "-p", "16", "-r", "1"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out.find("| ffn_down | f32 |"), std::string::npos) << result.out;
}

TEST(BenchCommand, BadArgumentsAreOneLine) {
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"-m", test::tiny_command_model(), "-d", "513"},
        {"-m", test::tiny_command_model(), "-p", "0", "-n", "0"},
        {"-m", test::tiny_command_model(), "-r", "0"},
        {"-m", test::tiny_command_model(), "--vs", "abacus"},
        {"-m", test::tiny_command_model(), "-n", "2", "-d", "8,8", "--plot", "/no/such/folder/speed.svg"},
        {"-p", "8"},
        {"-m", "/no/such/file"}}) {
    const test::CommandResult result = bench(arguments);
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_EQ(result.out, "");
    EXPECT_TRUE(result.err.starts_with("error: ")) << result.err;
  }
}

}  // namespace
}  // namespace razorkv
