// JSON schemas as GBNF grammars.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace razorkv::server {

/// A grammar of the JSON texts that the schema allows, with properties in the order of the schema and little white
/// space. Known: type (also a list of types), properties, required, additionalProperties, items, minItems, maxItems,
/// enum, const, anyOf, oneOf (as anyOf), $ref to #/$defs and #/definitions, minLength, maxLength; titles, descriptions,
/// defaults and examples are passed over.
/// Throws ApiError (400) naming the place for anything else, for schemas with more than 1000 parts and for references
/// that never reach a value.
std::string schema_to_grammar(const nlohmann::ordered_json& schema, const std::string& path);

/// Any JSON object.
std::string json_object_grammar();

}  // namespace razorkv::server
