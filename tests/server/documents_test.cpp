// Documents over HTTP: read once, asked often, saved, restored, deleted.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/http_fixture.h"

namespace razorkv::test {
namespace {

using ::testing::HasSubstr;

std::string long_text() {
  std::string out;
  for (int i = 0; i < 60; ++i) out += "line " + std::to_string(i * 7919 % 101) + ".";
  return out;
}

json question(const std::string& id, const std::string& text) {
  json out = chat_request(text, 6);
  out["document"] = id;
  return out;
}

ServerOptions with_folder(const std::string& folder) {
  ServerOptions options;
  options.app.document_folder = folder;
  return options;
}

TEST(DocumentsTest, AQuestionStartsFromTheDocument) {
  const TestServer server;
  const json document = server.ok("/v1/documents", {{"text", long_text()}, {"name", "lines"}});
  const std::string id = document["id"];
  EXPECT_TRUE(document["compressed"]);
  EXPECT_LT(document["kv_bytes"], document["uncompressed_bytes"]);
  EXPECT_FALSE(document["saved"]);
  const json first = server.ok("/v1/chat/completions", question(id, "what is it?"));
  EXPECT_EQ(first["usage"]["prompt_tokens_details"]["cached_tokens"], document["tokens"]);
  const json other = server.ok("/v1/chat/completions", question(id, "who is it?"));
  EXPECT_EQ(other["usage"]["prompt_tokens_details"]["cached_tokens"], document["tokens"]);
  // A question is answered alike whatever was asked before.
  json alone = question(id, "what is it?");
  alone["cache_prompt"] = false;
  EXPECT_EQ(logprobs(server.ok("/v1/chat/completions", alone)), logprobs(first));
  json next = question(id, "what is it?");
  next["messages"].push_back({{"role", "assistant"}, {"content", "a text"}});
  next["messages"].push_back({{"role", "user"}, {"content", "and then?"}});
  const json turn = server.ok("/v1/chat/completions", next);
  EXPECT_GT(turn["usage"]["prompt_tokens_details"]["cached_tokens"], document["tokens"]);
  // The document alone does not answer for another one.
  EXPECT_EQ(server.ok("/v1/chat/completions",
                      chat_request(long_text() + "\n\nwhat is it?"))["usage"]["prompt_tokens_details"]["cached_tokens"],
            0);
  EXPECT_EQ(server.get("/v1/documents")["data"].size(), 1U);
  EXPECT_EQ(server.client().Delete("/v1/documents/" + id)->status, 200);
  EXPECT_EQ(server.post("/v1/chat/completions", question(id, "x").dump())->status, 404);
  EXPECT_EQ(server.client().Get("/v1/documents/" + id)->status, 404);
}

TEST(DocumentsTest, ProgressIsStreamed) {
  const TestServer server;
  const auto result = server.post("/v1/documents", json{{"text", long_text()}, {"stream", true}}.dump());
  ASSERT_TRUE(result);
  const std::vector<json> seen = events(result->body);
  ASSERT_GE(seen.size(), 2U);
  std::int64_t done = -1;
  for (std::size_t i = 0; i + 1 < seen.size(); ++i) {
    EXPECT_GE(seen[i]["done"], done);
    done = seen[i]["done"];
    EXPECT_LE(done, seen[i]["total"]);
  }
  EXPECT_EQ(seen.back()["object"], "document");
}

TEST(DocumentsTest, SurvivesARestart) {
  const TemporaryFolder folder;
  std::string id;
  std::vector<double> before;
  {
    const TestServer server(with_folder(folder.path()));
    const json document = server.ok("/v1/documents", {{"text", long_text()}, {"name", "kept"}});
    id = document["id"];
    EXPECT_TRUE(document["saved"]);
    before = logprobs(server.ok("/v1/chat/completions", question(id, "what?")));
  }
  write_bytes(folder.file(id + ".state.17.0.tmp"), "left by a killed server");
  write_bytes(folder.file("doc-0123456789abcdef01234567.state"), "never finished");
  {
    const TestServer server(with_folder(folder.path()));
    EXPECT_EQ(folder.names().size(), 2U);
    const json known = server.get("/v1/documents/" + id);
    EXPECT_EQ(known["name"], "kept");
    EXPECT_FALSE(known["loaded"]);
    const json answer = server.ok("/v1/chat/completions", question(id, "what?"));
    EXPECT_EQ(logprobs(answer), before);
    EXPECT_EQ(answer["timings"]["cache_n"], known["tokens"]);
    EXPECT_EQ(server.client().Delete("/v1/documents/" + id)->status, 200);
    EXPECT_TRUE(folder.names().empty());
  }
}

TEST(DocumentsTest, DamagedFilesAreSaidSoAndHurtNothingElse) {
  const TemporaryFolder folder;
  std::string id;
  std::string whole;
  {
    const TestServer server(with_folder(folder.path()));
    id = server.ok("/v1/documents", {{"text", long_text()}})["id"];
    whole = server.ok("/v1/documents", {{"text", "another " + long_text()}})["id"];
  }
  std::string bytes = read_bytes(folder.file(id + ".state"));
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  write_bytes(folder.file(id + ".state"), bytes);
  write_bytes(folder.file("doc-aaaaaaaaaaaaaaaaaaaaaaaa.json"), "{\"version\": 1");
  {
    const TestServer server(with_folder(folder.path()));
    EXPECT_EQ(server.get("/v1/documents")["data"].size(), 2U);
    const auto refused = server.post("/v1/chat/completions", question(id, "what?").dump());
    EXPECT_EQ(refused->status, 500);
    EXPECT_THAT(json::parse(refused->body)["error"]["message"].get<std::string>(), HasSubstr("SHA-256"));
    server.ok("/v1/chat/completions", question(whole, "what?"));
  }
  ServerOptions other = with_folder(folder.path());
  other.window = 30;
  const TestServer server(other);
  EXPECT_EQ(server.post("/v1/chat/completions", question(whole, "what?").dump())->status, 500);
  server.ok("/v1/chat/completions", chat_request("still there"));
}

TEST(DocumentsTest, ADocumentThatCannotBeSavedIsNotKept) {
  const TemporaryFolder folder;
  const TestServer server(with_folder(folder.file("states")));
  const std::string id = server.ok("/v1/documents", {{"text", long_text()}})["id"];
  std::filesystem::remove_all(folder.file("states"));
  const auto failed = server.post("/v1/documents", json{{"text", "other " + long_text()}}.dump());
  EXPECT_EQ(failed->status, 500);
  EXPECT_THAT(failed->body, HasSubstr("error"));
  EXPECT_EQ(server.get("/v1/documents")["data"].size(), 1U);
  server.ok("/v1/chat/completions", question(id, "still there?"));  // its state is in memory
}

TEST(DocumentsTest, RefusesWhatCannotBeDone) {
  const TestServer server;
  const std::string id = server.ok("/v1/documents", {{"text", long_text()}})["id"];
  const auto status = [&](const json& body) { return server.post("/v1/documents", body.dump())->status; };
  EXPECT_EQ(status({{"text", "  \n "}}), 400);
  EXPECT_EQ(status({{"text", 5}}), 400);
  EXPECT_EQ(status(json::object()), 400);
  EXPECT_EQ(status({{"text", std::string(5000, 'x')}}), 400);  // longer than the context
  json system = question(id, "x");
  system["messages"].insert(system["messages"].begin(), {{"role", "system"}, {"content", "be kind"}});
  EXPECT_EQ(server.post("/v1/chat/completions", system.dump())->status, 400);
  for (const char* name : {"../../etc/passwd", "doc-ffffffffffffffffffffffff", ".", "%2e%2e"}) {
    EXPECT_EQ(server.post("/v1/chat/completions", question(name, "x").dump())->status, 404);
    const auto removed = server.client().Delete(std::string("/v1/documents/") + name);
    EXPECT_TRUE(removed->status == 404) << name;
  }
}

}  // namespace
}  // namespace razorkv::test
