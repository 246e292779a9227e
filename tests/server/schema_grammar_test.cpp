// JSON schemas as grammars: what the grammar accepts, and clear refusals.
#include "server/schema_grammar.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/model_handle.h"
#include "engine/sampler.h"
#include "engine/session_fixture.h"
#include "razorkv/error.h"
#include "server/api_error.h"

namespace razorkv::test {
namespace {

using server::schema_to_grammar;

class SchemaGrammarTest : public ::testing::Test {
 protected:
  /// Whether `text` is a whole sentence of the grammar: every byte is allowed, and then the end.
  bool accepts(const std::string& grammar, const std::string& text) const {
    SamplingParams params;
    params.grammar = grammar;
    Sampler sampler(model_.impl()->vocabulary, params);
    try {
      for (const char byte : text) sampler.accept(3 + static_cast<unsigned char>(byte));  // byte tokens
      sampler.accept(2);                                                                  // </s>
    } catch (const InvalidArgument&) {
      return false;
    }
    return true;
  }
  void expect(const char* schema, const std::vector<std::string>& good, const std::vector<std::string>& bad) const {
    const std::string grammar = schema_to_grammar(nlohmann::ordered_json::parse(schema), "schema");
    for (const std::string& text : good) EXPECT_TRUE(accepts(grammar, text)) << schema << text;
    for (const std::string& text : bad) EXPECT_FALSE(accepts(grammar, text)) << schema << text;
  }

  const Model model_ = tiny_public_model();
};

TEST_F(SchemaGrammarTest, Values) {
  expect(R"({"type": "integer"})", {"0", "-17", "123"}, {"", "01", "1.5", "x", "\"1\""});
  expect(R"({"type": "number"})", {"0", "-1.25", "1e-5"}, {"1.", ".5", "NaN"});
  expect(R"({"type": ["boolean", "null"]})", {"true", "null"}, {"True", "0"});
  expect(R"({"type": "string"})", {R"("")", R"("a b")", R"("\"\\\n\u00e9")"}, {"\"a\nb\"", "a", R"("\x")"});
  expect(R"({"type": "string", "minLength": 2, "maxLength": 3})", {R"("ab")", R"("abc")"}, {R"("a")", R"("abcd")"});
  expect(R"({"enum": ["a\"b", 1, null]})", {R"("a\"b")", "1", "null"}, {"\"a\"", "2"});
  expect(R"({"const": {"k": [1]}})", {R"({"k":[1]})"}, {R"({"k":[2]})"});
  expect("{}", {"1", R"({"a": [1, {"b": null}]})", "[]"}, {"", "{a}"});
  expect(R"({"anyOf": [{"type": "integer"}, {"type": "boolean"}]})", {"5", "false"}, {"\"5\""});
}

TEST_F(SchemaGrammarTest, Arrays) {
  expect(R"({"type": "array", "items": {"type": "integer"}})", {"[]", "[1]", "[1, 2,3]"}, {"[1,]", "[,1]", "[\"a\"]"});
  expect(R"({"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 3})", {"[1,2]", "[1,2,3]"},
         {"[]", "[1]", "[1,2,3,4]"});
  expect(R"({"type": "array", "maxItems": 0})", {"[]"}, {"[1]"});
}

TEST_F(SchemaGrammarTest, Objects) {
  const char* schema = R"({"type": "object", "properties": {"b": {"type": "integer"}, "a": {"type": "integer"},
      "c": {"type": "integer"}}, "required": ["a"], "additionalProperties": false})";
  expect(schema, {R"({"a":1})", R"({"b":1,"a":2})", R"({"a":1, "c":2})", R"({"b":1,"a":2,"c":3})"},
         {"{}", R"({"b":1})", R"({"a":1,})", R"({"a":1,"b":2})", R"({"a":1,"d":2})", R"({"b":1 "a":2})"});
  expect(R"({"type": "object", "properties": {"x": {"type": "null"}, "y": {"type": "null"}}})",
         {"{}", R"({"x":null})", R"({"y":null})", R"({"x":null,"y":null})"}, {R"({,"y":null})"});
  expect(R"({"type": "object", "additionalProperties": false})", {"{}"}, {R"({"a":1})"});
  expect(R"({"$ref": "#/$defs/tree", "$defs": {"tree": {"type": "object", "properties": {"value": {"type": "integer"},
         "children": {"type": "array", "items": {"$ref": "#/$defs/tree"}}}, "required": ["value", "children"]}}})",
         {R"({"value":1,"children":[{"value":2,"children":[]}]})"}, {R"({"value":1})"});
}

TEST_F(SchemaGrammarTest, RefusesWhatItDoesNotKnow) {
  const auto refuses = [](const std::string& schema, const std::string& place) {
    try {
      schema_to_grammar(nlohmann::ordered_json::parse(schema), "schema");
      ADD_FAILURE() << schema;
    } catch (const server::ApiError& error) {
      EXPECT_EQ(error.status(), 400);
      EXPECT_THAT(error.what(), ::testing::HasSubstr(place));
    }
  };
  refuses(R"({"type": "string", "pattern": "a*"})", "schema.pattern");
  refuses(R"({"type": "object", "properties": {"a": {"allOf": []}}})", "schema.properties.a.allOf");
  refuses(R"({"type": "colour"})", "schema.type");
  refuses(R"({"type": 5})", "schema.type");
  refuses("5", "schema");
  refuses(R"({"$ref": "https://example.org/x"})", "schema.$ref");
  refuses(R"({"$ref": "#/$defs/none"})", "schema.$ref");
  refuses(R"({"$ref": "#/$defs/a", "$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}]}}})", "anyOf");
  refuses(R"({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}})", "schema.$ref");
  refuses(R"({"type": "array", "minItems": -1})", "schema.minItems");
  refuses(R"({"type": "array", "minItems": 3, "maxItems": 2})", "schema.maxItems");
  refuses(R"({"type": "object", "properties": {"a": {}}, "required": ["b"]})", "schema.required");
  refuses(R"({"enum": []})", "schema.enum");
  nlohmann::ordered_json big = {{"type", "object"}};
  for (int i = 0; i < 1001; ++i) big["properties"]["p" + std::to_string(i)] = {{"type", "null"}};
  refuses(big.dump(), "1000 parts");
}

}  // namespace
}  // namespace razorkv::test
