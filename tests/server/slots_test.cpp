// What a slot has kept, over HTTP: saved, restored in another server, erased; and everything that can be wrong with it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>

#include "server/http_fixture.h"
#include "server/slot_table.h"

namespace razorkv::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

ServerOptions with_folder(const std::string& folder, std::int64_t window = 24) {
  ServerOptions options;
  options.app.slot_folder = folder;
  options.window = window;
  return options;
}

std::string long_text() {
  std::string out;
  for (int i = 0; i < 30; ++i) out += "line " + std::to_string(i * 7919 % 101) + ".";
  return out;
}

std::int64_t cached(const json& answer) { return answer["usage"]["prompt_tokens_details"]["cached_tokens"]; }

httplib::Result act(const TestServer& server, const std::string& slot, const std::string& action,
                    const std::string& name) {
  return server.post("/slots/" + slot + "?action=" + action, json{{"filename", name}}.dump());
}

void expect_error(const httplib::Result& result, int status, const std::string& message) {
  ASSERT_TRUE(result);
  EXPECT_EQ(result->status, status) << result->body;
  EXPECT_THAT(json::parse(result->body)["error"]["message"].get<std::string>(), HasSubstr(message));
}

/// The next request must work.
void expect_alive(const TestServer& server) { server.ok("/v1/chat/completions", chat_request("alive?", 2)); }

TEST(SlotTable, GivesTheLowestFreeSlots) {
  server::SlotTable slots(4);
  EXPECT_THAT(slots.take(1), ElementsAre(0U));
  EXPECT_THAT(slots.take(2), ElementsAre(1U, 2U));
  slots.release({0});
  EXPECT_EQ(slots.used(), 2U);
  EXPECT_FALSE(slots.busy(0));
  EXPECT_THAT(slots.take(2), ElementsAre(0U, 3U));
  EXPECT_EQ(slots.used(), 4U);
}

TEST(SlotsTest, ARestoredSlotGoesOnAsTheSavedOneWould) {
  const TemporaryFolder folder;
  const json prompt = chat_request(long_text());
  std::int64_t kept = 0;
  {
    const TestServer server(with_folder(folder.path()));
    const json first = server.ok("/v1/chat/completions", prompt);
    const auto saved = act(server, "0", "save", "one.bin");
    ASSERT_TRUE(saved);
    ASSERT_EQ(saved->status, 200) << saved->body;
    const json report = json::parse(saved->body);
    EXPECT_EQ(report["id_slot"], 0);
    EXPECT_EQ(report["filename"], "one.bin");
    EXPECT_EQ(report["n_written"], std::filesystem::file_size(folder.file("one.bin")));
    kept = report["n_saved"];
    EXPECT_GT(kept, first["usage"]["prompt_tokens"]);
  }
  const TestServer fresh(with_folder(folder.path()));
  const std::vector<double> again = logprobs(fresh.ok("/v1/chat/completions", prompt));
  TestServer restored(with_folder(folder.path()));
  const auto result = act(restored, "2", "restore", "one.bin");
  ASSERT_TRUE(result);
  ASSERT_EQ(result->status, 200) << result->body;
  EXPECT_EQ(json::parse(result->body)["n_restored"], kept);
  std::size_t checkpoints = 0;
  restored.app().scheduler.on_slots(
      [&](server::SlotTable& /*slots*/, server::CheckpointStore& store) { checkpoints = store.count(); });
  EXPECT_EQ(checkpoints, 2U);
  // What is saved again is the same, to the byte.
  ASSERT_EQ(act(restored, "2", "save", "two.bin")->status, 200);
  EXPECT_EQ(read_bytes(folder.file("two.bin")), read_bytes(folder.file("one.bin")));
  EXPECT_EQ(logprobs(restored.ok("/v1/chat/completions", prompt)), again);
}

TEST(SlotsTest, ARestoredPromptIsNotReadAgain) {
  const TemporaryFolder folder;
  // One token is generated and none is fed, so what the slot keeps is the prompt.
  const json prompt = chat_request(long_text(), 1);
  const TestServer saving(with_folder(folder.path()));
  const json first = saving.ok("/v1/chat/completions", prompt);
  ASSERT_EQ(act(saving, "0", "save", "p")->status, 200);
  const TestServer restoring(with_folder(folder.path()));
  ASSERT_EQ(act(restoring, "0", "restore", "p")->status, 200);
  const json second = restoring.ok("/v1/chat/completions", prompt);
  EXPECT_GT(cached(second), 0);
  EXPECT_EQ(logprobs(second), logprobs(first));
}

TEST(SlotsTest, ErasedStatesAreReadAgain) {
  const TestServer server;
  const json prompt = chat_request(long_text(), 1);
  server.ok("/v1/chat/completions", prompt);
  EXPECT_GT(cached(server.ok("/v1/chat/completions", prompt)), 0);
  const auto erased = server.client().Post("/slots/0?action=erase");
  ASSERT_TRUE(erased);
  EXPECT_EQ(erased->status, 200) << erased->body;
  EXPECT_GT(json::parse(erased->body)["n_erased"], 0);
  EXPECT_EQ(cached(server.ok("/v1/chat/completions", prompt)), 0);
}

TEST(SlotsTest, BadRequestsAreRefused) {
  const TemporaryFolder folder;
  const TestServer server(with_folder(folder.path()));
  expect_error(act(TestServer(), "0", "save", "x"), 501, "--slot-save-path");
  expect_error(act(server, "4", "save", "x"), 404, "no slot 4");
  expect_error(act(server, "99999999999999999999", "save", "x"), 404, "no slot");
  expect_error(act(server, "0", "burn", "x"), 400, "save, restore or erase");
  expect_error(act(server, "0", "save", "x"), 400, "keeps nothing");
  expect_error(act(server, "0", "restore", "x"), 404, "no such file");
  expect_error(server.client().Post("/slots/0?action=erase"), 400, "keeps nothing");
  expect_error(server.post("/slots/0?action=save", "{}"), 400, "filename");
  server.ok("/v1/chat/completions", chat_request("hello", 2));
  for (const std::string& name : {std::string(), std::string("../x"), std::string("/etc/x"), std::string(".x"),
                                  std::string("a/b"), std::string("a\0b", 3), std::string(201, 'a')}) {
    expect_error(act(server, "0", "save", name), 400, "filename: expected");
  }
  EXPECT_TRUE(folder.names().empty());
  expect_alive(server);
}

TEST(SlotsTest, BadFilesAreRefusedAndNothingIsLost) {
  const TemporaryFolder folder;
  const TestServer server(with_folder(folder.path()));
  server.ok("/v1/chat/completions", chat_request(long_text(), 1));
  ASSERT_EQ(act(server, "0", "save", "good")->status, 200);
  const std::string good = read_bytes(folder.file("good"));
  for (std::size_t at = 0; at < good.size(); at += good.size() / 40) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 0x20);
    write_bytes(folder.file("bad"), bad);
    expect_error(act(server, "0", "restore", "bad"), 400, "bad");
    write_bytes(folder.file("bad"), good.substr(0, at));
    expect_error(act(server, "0", "restore", "bad"), 400, "bad");
  }
  const TestServer other(with_folder(folder.path(), 25));
  expect_error(act(other, "0", "restore", "good"), 400, "policy");
  expect_alive(other);
  // The slot still keeps what it had.
  ASSERT_EQ(act(server, "0", "save", "again")->status, 200);
  EXPECT_EQ(read_bytes(folder.file("again")), good);
  expect_alive(server);
}

TEST(SlotsTest, AFullDiskLeavesTheOldFile) {
  const TemporaryFolder folder;
  const TestServer server(with_folder(folder.path()));
  server.ok("/v1/chat/completions", chat_request(long_text(), 1));
  ASSERT_EQ(act(server, "0", "save", "s")->status, 200);
  const std::string before = read_bytes(folder.file("s"));
  rlimit old{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old), 0);
  rlimit small = old;
  small.rlim_cur = before.size() / 2;
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const auto failed = act(server, "0", "save", "s");
  setrlimit(RLIMIT_FSIZE, &old);
  std::signal(SIGXFSZ, handler);
  ASSERT_TRUE(failed);
  EXPECT_EQ(failed->status, 500) << failed->body;
  EXPECT_EQ(read_bytes(folder.file("s")), before);
  EXPECT_THAT(folder.names(), ElementsAre("s"));
  expect_alive(server);
}

}  // namespace
}  // namespace razorkv::test
