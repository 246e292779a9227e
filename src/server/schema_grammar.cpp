#include "server/schema_grammar.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "server/api_error.h"

namespace razorkv::server {
namespace {

using json = nlohmann::ordered_json;

constexpr std::size_t kMostParts = 1000;
constexpr std::int64_t kMostRepeated = 1000;

constexpr const char* kCommonRules = R"(ws ::= [ \n]{0,2}
string ::= "\"" char* "\""
char ::= [^"\\\x00-\x1f] | "\\" (["\\/bfnrt] | "u" [0-9a-fA-F]{4})
integer ::= "-"? ("0" | [1-9] [0-9]{0,15})
number ::= integer ("." [0-9]{1,15})? ([eE] [-+]? [0-9]{1,3})?
boolean ::= "true" | "false"
null ::= "null"
value ::= object | array | string | number | boolean | null
object ::= "{" ws (string ws ":" ws value ws ("," ws string ws ":" ws value ws)*)? "}"
array ::= "[" ws (value ws ("," ws value ws)*)? "]"
)";

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

/// A grammar literal of a JSON value's text.
std::string literal(const json& value) { return quoted(value.dump()); }

class Converter {
 public:
  Converter(const json& root, std::string path) : root_(root), path_(std::move(path)) {}

  std::string convert() {
    const std::string body = rule(root_, path_);
    std::string out = "root ::= " + body + "\n";
    for (const auto& [name, text] : rules_) out += fmt::format("{} ::= {}\n", name, text);
    return out + kCommonRules;
  }

 private:
  [[noreturn]] static void refuse(const std::string& place, const std::string& what) {
    throw ApiError(400, place + ": " + what, place, "unsupported_schema");
  }

  std::string named(const std::string& text) {
    std::string name = fmt::format("part-{}", rules_.size());
    rules_.emplace_back(name, text);
    return name;
  }

  static void check_keywords(const json& schema, const std::string& place) {
    static const std::set<std::string> known = {"type",    "properties",  "required",  "additionalProperties",
                                                "items",   "minItems",    "maxItems",  "enum",
                                                "const",   "anyOf",       "oneOf",     "$ref",
                                                "$defs",   "minLength",   "maxLength", "definitions",
                                                "title",   "description", "default",   "examples",
                                                "$schema", "$id",         "$comment"};
    for (const auto& [key, unused] : schema.items()) {
      if (!known.contains(key))
        refuse(fmt::format("{}.{}", place, key), "this keyword of JSON Schema is not supported");
    }
  }

  static std::int64_t count(const json& schema, const char* name, std::int64_t otherwise, const std::string& place) {
    const auto found = schema.find(name);
    if (found == schema.end()) return otherwise;
    if (!found->is_number_unsigned() || found->get<std::uint64_t>() > kMostRepeated) {
      refuse(place + "." + name, fmt::format("expected a whole number from 0 to {}", kMostRepeated));
    }
    return found->get<std::int64_t>();
  }

  static std::string repeated(std::int64_t low, std::int64_t high) {
    return high < 0 ? fmt::format("{{{},}}", low) : fmt::format("{{{},{}}}", low, high);
  }

  std::string rule(const json& schema, const std::string& place) {
    if (++parts_ > kMostParts) refuse(place, fmt::format("the schema has more than {} parts", kMostParts));
    if (schema.is_boolean() && schema.get<bool>()) return "value";
    if (!schema.is_object()) refuse(place, "expected a schema (an object)");
    check_keywords(schema, place);
    if (schema.contains("$ref")) return reference(schema["$ref"], place + ".$ref");
    if (schema.contains("const")) return literal(schema["const"]);
    if (schema.contains("enum")) return enumeration(schema["enum"], place + ".enum");
    for (const char* name : {"anyOf", "oneOf"}) {
      if (schema.contains(name)) return alternatives(schema[name], place + "." + name);
    }
    if (!schema.contains("type")) return schema.contains("properties") ? object(schema, place) : "value";
    const json& type = schema["type"];
    if (type.is_string()) return of_type(type.get<std::string>(), schema, place);
    if (!type.is_array() || type.empty()) refuse(place + ".type", "expected a name or a list of names");
    std::string out;
    for (const json& one : type) {
      if (!one.is_string()) refuse(place + ".type", "expected a name or a list of names");
      out += (out.empty() ? "" : " | ") + of_type(one.get<std::string>(), schema, place);
    }
    return "(" + out + ")";
  }

  std::string of_type(const std::string& type, const json& schema, const std::string& place) {
    if (type == "object") return object(schema, place);
    if (type == "array") return array(schema, place);
    if (type == "string") return text(schema, place);
    if (type == "integer" || type == "number" || type == "boolean" || type == "null") return type;
    refuse(place + ".type", "'" + type + "' is no type of JSON Schema");
  }

  static std::string text(const json& schema, const std::string& place) {
    const std::int64_t low = count(schema, "minLength", 0, place);
    const std::int64_t high = count(schema, "maxLength", -1, place);
    if (low == 0 && high < 0) return "string";
    if (high >= 0 && high < low) refuse(place + ".maxLength", "is less than minLength");
    return "\"\\\"\" char" + repeated(low, high) + " \"\\\"\"";
  }

  std::string reference(const json& target, const std::string& place) {
    if (!target.is_string()) refuse(place, "expected a string");
    const auto name = target.get<std::string>();
    const auto known = references_.find(name);
    if (known != references_.end()) return known->second;
    if (!name.starts_with("#/$defs/") && !name.starts_with("#/definitions/")) {
      refuse(place, "only references to #/$defs/ and #/definitions/ are supported");
    }
    const json* found = nullptr;
    try {
      found = &root_.at(json::json_pointer(name.substr(1)));
    } catch (const json::exception&) {
      refuse(place, "there is no '" + name + "' in the schema");
    }
    if (found->is_object() && found->contains("$ref")) refuse(place, "a reference to a reference is not supported");
    std::string rule_name = fmt::format("ref-{}", references_.size());
    references_[name] = rule_name;
    std::string body = rule(*found, name);
    rules_.emplace_back(rule_name, std::move(body));
    return rule_name;
  }

  static std::string enumeration(const json& values, const std::string& place) {
    if (!values.is_array() || values.empty() || values.size() > kMostParts) refuse(place, "expected a list of values");
    std::string out;
    for (const json& value : values) out += (out.empty() ? "" : " | ") + literal(value);
    return "(" + out + ")";
  }

  std::string alternatives(const json& schemas, const std::string& place) {
    if (!schemas.is_array() || schemas.empty()) refuse(place, "expected a list of schemas");
    std::string out;
    for (std::size_t i = 0; i < schemas.size(); ++i) {
      const std::string one = rule(schemas[i], fmt::format("{}[{}]", place, i));
      if (one.starts_with("ref-")) refuse_direct_recursion(one, place);
      out += (out.empty() ? "" : " | ") + one;
    }
    return named(out);
  }

  /// A reference inside the rule that it names, with nothing in front, would never end.
  void refuse_direct_recursion(const std::string& rule_name, const std::string& place) const {
    const bool done = std::any_of(rules_.begin(), rules_.end(), [&](const auto& r) { return r.first == rule_name; });
    if (!done) refuse(place, "a reference back to the schema that it stands in is not supported as an alternative");
  }

  std::string array(const json& schema, const std::string& place) {
    const std::int64_t low = count(schema, "minItems", 0, place);
    const std::int64_t high = count(schema, "maxItems", -1, place);
    if (high >= 0 && high < low) refuse(place + ".maxItems", "is less than minItems");
    if (high == 0) return "\"[\" ws \"]\"";
    const std::string item = named(schema.contains("items") ? rule(schema["items"], place + ".items") : "value");
    const std::string more =
        "(\",\" ws " + item + " ws)" + repeated(std::max<std::int64_t>(low - 1, 0), high < 0 ? -1 : high - 1);
    const std::string filled = item + " ws " + more;
    return named("\"[\" ws " + (low == 0 ? "(" + filled + ")?" : filled) + " \"]\"");
  }

  std::string object(const json& schema, const std::string& place) {
    const auto properties = schema.find("properties");
    const bool open = schema.contains("additionalProperties") && schema["additionalProperties"] != json(false);
    if (properties == schema.end() || properties->empty()) {
      if (!open && schema.contains("additionalProperties")) return "\"{\" ws \"}\"";
      return "object";
    }
    if (open) refuse(place + ".additionalProperties", "only false is supported beside properties");
    if (!properties->is_object()) refuse(place + ".properties", "expected an object");
    std::set<std::string> required;
    if (schema.contains("required")) {
      if (!schema["required"].is_array()) refuse(place + ".required", "expected a list of names");
      for (const json& name : schema["required"]) {
        if (!name.is_string() || !properties->contains(name.get<std::string>())) {
          refuse(place + ".required", "expected names that are among the properties");
        }
        required.insert(name.get<std::string>());
      }
    }
    std::vector<std::pair<std::string, bool>> members;
    for (const auto& [name, value] : properties->items()) {
      const std::string inner = rule(value, fmt::format("{}.properties.{}", place, name));
      std::string member = named(fmt::format("{} ws \":\" ws {}", literal(json(name)), inner));
      members.emplace_back(std::move(member), required.contains(name));
    }
    // after[i]: members from i on behind another one; first[i]: the first one is at i or later. Linear in size.
    std::string after = "ws";
    std::string first = "ws";
    for (std::size_t i = members.size(); i-- > 0;) {
      const auto& [member, needed] = members[i];
      const std::string start = fmt::format("{} {}", member, after);
      std::string next_first = named(needed ? start : fmt::format("({}) | {}", start, first));
      const std::string next = fmt::format("ws \",\" ws {}", start);
      after = named(needed ? next : fmt::format("({}) | {}", next, after));
      first = std::move(next_first);
    }
    return named("\"{\" ws " + first + " \"}\"");
  }

  const json& root_;
  std::string path_;
  std::size_t parts_ = 0;
  std::vector<std::pair<std::string, std::string>> rules_;
  std::map<std::string, std::string> references_;
};

}  // namespace

std::string schema_to_grammar(const json& schema, const std::string& path) { return Converter(schema, path).convert(); }

std::string json_object_grammar() { return std::string("root ::= object\n") + kCommonRules; }

}  // namespace razorkv::server
