#include "eval/policy_column.h"

#include <fmt/format.h>

#include <algorithm>

#include "heads/head_selection.h"
#include "razorkv/error.h"

namespace razorkv {
namespace {

PolicyColumn parse_column(std::string_view word, const PolicyOptions& base) {
  PolicyColumn column{std::string(word), base};
  PolicyOptions& options = column.options;
  const std::size_t colon = word.find(':');
  const std::string name(word.substr(0, colon));
  const std::string rest(colon == std::string_view::npos ? std::string_view{} : word.substr(colon + 1));
  if (rest.empty() && (name == "full" || name == "streaming-llm")) {
    options.policy = name;
    return column;
  }
  if (rest.empty() && (name == "none" || name == "all")) {
    options.policy = "razor";
    options.heads = name;
    return column;
  }
  if (!rest.empty() && (name == "razor" || name == "razor-nocomp")) {
    options.policy = name;
    options.heads = rest;
    std::replace(options.heads.begin(), options.heads.end(), ';', ',');
    parse_head_choice(options.heads);
    return column;
  }
  if (const std::size_t last = rest.rfind(':'); name == "random" && last != std::string::npos) {
    options.policy = "random";
    options.heads = fmt::format("random:{}:{}", rest.substr(last + 1), rest.substr(0, last));
    parse_head_choice(options.heads);
    return column;
  }
  throw InvalidArgument(fmt::format(
      "policy '{}': expected full, none, all, streaming-llm, razor:HEADS, razor-nocomp:HEADS or random:COUNT:SEED",
      word));
}

}  // namespace

std::vector<PolicyColumn> parse_policy_columns(std::string_view text, const PolicyOptions& base) {
  std::vector<PolicyColumn> columns;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    PolicyColumn column = parse_column(text.substr(begin, end - begin), base);
    const auto same = [&](const PolicyColumn& other) { return other.name == column.name; };
    if (std::any_of(columns.begin(), columns.end(), same)) {
      throw InvalidArgument(fmt::format("policy '{}' comes twice", column.name));
    }
    columns.push_back(std::move(column));
    begin = end + 1;
  }
  return columns;
}

}  // namespace razorkv
