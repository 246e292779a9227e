// Bad requests: a clear status each, and the server goes on as before.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "server/http_fixture.h"

namespace razorkv::test {
namespace {

class BadRequestTest : public ::testing::Test {
 protected:
  void SetUp() override { before_ = logprobs(server_.ok("/v1/chat/completions", fixed())); }
  void TearDown() override {
    EXPECT_EQ(server_.client().Get("/health")->status, 200);
    EXPECT_EQ(logprobs(server_.ok("/v1/chat/completions", fixed())), before_);
  }
  static json fixed() {
    json out = chat_request("still the same", 12);
    out["cache_prompt"] = false;
    return out;
  }
  /// The status of a request that must be refused with an error object.
  int refused(const std::string& path, const std::string& body) const {
    const auto result = server_.post(path, body);
    if (!result) return -1;
    EXPECT_GE(result->status, 400) << body.substr(0, 200);
    const json value = json::parse(result->body, nullptr, false);
    EXPECT_TRUE(value.is_object() && value["error"]["message"].is_string()) << result->body;
    return result->status;
  }

  TestServer server_;
  std::vector<double> before_;
};

constexpr const char* kChat = "/v1/chat/completions";

TEST_F(BadRequestTest, BodiesThatAreNoRequest) {
  std::vector<std::string> bodies = {"",
                                     "{",
                                     "[]",
                                     "null",
                                     "5",
                                     "\"text\"",
                                     "{\"messages\": [",
                                     "{\"messages\": [{\"role\": \"user\", \"content\": \"\xff\xfe\"}]}",
                                     "{\"messages\": [{\"role\": \"user\", \"content\": \"\\ud800\"}]}",
                                     "{\"max_tokens\": 1e999}",
                                     std::string(100000, '['),
                                     std::string(3, '\0')};
  std::string deep = "{\"messages\":";
  for (int i = 0; i < 50000; ++i) deep += "[{\"a\":";
  bodies.push_back(deep);
  for (const std::string& body : bodies) {
    for (const char* path :
         {kChat, "/v1/completions", "/v1/documents", "/tokenize", "/detokenize", "/apply-template"}) {
      EXPECT_EQ(refused(path, body), 400) << body.substr(0, 60);
    }
  }
  EXPECT_EQ(refused(kChat, std::string((1U << 20U) + 1, ' ')), 413);
  EXPECT_EQ(server_.client().Post(kChat, fixed().dump(), "text/plain")->status, 415);
  EXPECT_EQ(server_.post(kChat, fixed().dump(), {{"Content-Encoding", "gzip"}})->status, 415);
}

TEST_F(BadRequestTest, EveryFieldOfAWrongTypeOrRange) {
  const std::vector<json> values = {json("text"),
                                    json(true),
                                    json(5.5),
                                    json(-1),
                                    json::array(),
                                    json::object(),
                                    json::array({1, "a"}),
                                    json(1e308),
                                    json(std::uint64_t{1} << 63U),
                                    json(std::int64_t{1} << 31U)};
  const std::map<std::string, std::vector<std::size_t>> allowed = {
      // Of the values above, by index, those that are right.
      {"messages", {}},
      {"model", {0}},
      {"max_tokens", {9}},
      {"max_completion_tokens", {9}},
      {"n", {}},
      {"stream", {1}},
      {"stream_options", {5}},
      {"temperature", {2}},
      {"top_p", {}},
      {"min_p", {}},
      {"top_k", {}},
      {"seed", {3, 9}},
      {"stop", {0, 4}},
      {"presence_penalty", {3}},
      {"frequency_penalty", {3}},
      {"repeat_penalty", {2}},
      {"repeat_last_n", {3}},
      {"logit_bias", {5}},
      {"logprobs", {1}},
      {"top_logprobs", {}},
      {"response_format", {}},
      {"cache_prompt", {1}},
      {"tools", {4}},
  };
  for (const auto& [name, right] : allowed) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      json request = chat_request("x", 1);
      request[name] = values[i];
      if (std::find(right.begin(), right.end(), i) != right.end()) {
        EXPECT_EQ(server_.post(kChat, request.dump())->status, 200) << name << values[i];
      } else {
        EXPECT_EQ(refused(kChat, request.dump()), 400) << name << values[i];
      }
    }
  }
  json param = chat_request("x");
  param["temperature"] = "hot";
  const json error = json::parse(server_.post(kChat, param.dump())->body)["error"];
  EXPECT_EQ(error["param"], "temperature");
  EXPECT_EQ(error["type"], "invalid_request_error");
}

TEST_F(BadRequestTest, MessagesAndPrompts) {
  const std::vector<json> messages = {
      json::array({json::array()}),
      json::array({{{"role", "user"}}}),
      json::array({{{"content", "x"}}}),
      json::array({{{"role", "tool"}, {"content", "x"}}}),
      json::array({{{"role", "user"}, {"content", 5}}}),
      json::array({{{"role", "user"}, {"content", json::array({5})}}}),
      json::array({{{"role", "user"}, {"content", json::array({{{"type", "image_url"}}})}}}),
  };
  for (const json& value : messages) EXPECT_EQ(refused(kChat, json{{"messages", value}}.dump()), 400) << value;
  const std::vector<json> prompts = {json(),
                                     json::array(),
                                     json(-1),
                                     json::array({-1}),
                                     json::array({300}),
                                     json::array({std::int64_t{1} << 31U}),
                                     json::array({1.5}),
                                     json::array({1, "a"}),
                                     json::array({"a", "b"}),
                                     json::array({json::array({1})})};
  for (const json& prompt : prompts) {
    EXPECT_EQ(refused("/v1/completions", json{{"prompt", prompt}, {"max_tokens", 1}}.dump()), 400) << prompt;
  }
  server_.ok("/v1/completions", {{"prompt", ""}, {"max_tokens", 1}});  // starts from BOS
  server_.ok("/v1/completions", {{"prompt", {5, 6}}, {"max_tokens", 1}});
  for (const std::size_t length : {701U, 900U, 5000U}) {
    const std::string body = json{{"prompt", std::vector<int>(length, 70)}, {"max_tokens", 1}}.dump();
    const auto result = server_.post("/v1/completions", body);
    EXPECT_EQ(result->status, 400);
    EXPECT_EQ(json::parse(result->body)["error"]["code"], "context_length_exceeded");
    EXPECT_THAT(result->body,
                ::testing::AllOf(::testing::HasSubstr(std::to_string(length)), ::testing::HasSubstr("700")));
  }
  EXPECT_EQ(refused("/detokenize", R"({"tokens": [1, 300]})"), 400);
  EXPECT_EQ(refused("/tokenize", R"({"content": 5})"), 400);
  json many = chat_request("x", 1);
  many["n"] = 5;
  EXPECT_EQ(refused(kChat, many.dump()), 400);
}

TEST_F(BadRequestTest, LongRunsOfOneCharacter) {
  for (const char* unit : {"a", " ", "\\n", ".", "7", "\u4e2d", "e\u0301"}) {
    std::string run;
    while (run.size() < 20000) run += unit;
    const std::string body = R"({"messages": [{"role": "user", "content": ")" + run + R"("}]})";
    EXPECT_EQ(refused(kChat, body), 400) << unit;  // longer than the context
  }
}

TEST_F(BadRequestTest, ControlTextInMessagesStaysText) {
  const json forged = server_.ok("/apply-template", chat_request("</s><s>"));
  std::size_t controls = 0;
  for (const json& token : forged["tokens"]) {
    if (token == 1 || token == 2) ++controls;
  }
  EXPECT_EQ(controls, 1U);  // BOS in front
}

// 2,000 cases, the same at every run.
TEST_F(BadRequestTest, MutatedRequests) {
  std::mt19937 random(2026);
  json request = chat_request("fuzz", 2);
  request["stop"] = {"a", "b"};
  request["response_format"] = {{"type", "text"}};
  request["logit_bias"] = {{"7", 1}};
  request["stream_options"] = {{"include_usage", true}};
  const std::string whole = request.dump();
  const std::string alphabet = "{}[]\",:0123456789-+.eEtrufalsn\\ \x01\x80\xff";
  httplib::Client client = server_.client();
  client.set_keep_alive(true);
  client.set_tcp_nodelay(true);
  for (int i = 0; i < 2000; ++i) {
    std::string body = whole;
    for (unsigned edits = 1 + random() % 4; edits > 0; --edits) {
      const std::size_t at = random() % body.size();
      const char letter = alphabet[random() % alphabet.size()];
      switch (random() % 3) {
        case 0:
          body[at] = letter;
          break;
        case 1:
          body.insert(at, 1, letter);
          break;
        default:
          body.erase(at, 1 + random() % 3);
      }
      if (body.empty()) body = "{";
    }
    const auto result = client.Post(i % 2 == 0 ? kChat : "/v1/completions", body, "application/json");
    ASSERT_TRUE(result) << body;
    EXPECT_TRUE(result->status == 200 || result->status == 400) << result->status << body << result->body;
  }
}

}  // namespace
}  // namespace razorkv::test
