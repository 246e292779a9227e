#include "eval/policy_column.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <system_error>

#include "heads/head_selection.h"
#include "razorkv/error.h"

namespace razorkv {
namespace {

constexpr std::int64_t kWidestWindow = std::int64_t{1} << 40;  // as wide as an option may be

/// "0.33": a share of the uncompressed cache; "512": rows per head.
void parse_size(std::string_view word, std::string_view size, PolicyOptions& options) {
  const char* end = size.data() + size.size();
  const bool share = size.find('.') != std::string_view::npos;
  const auto result =
      share ? std::from_chars(size.data(), end, options.budget_share) : std::from_chars(size.data(), end, options.rows);
  const bool in_range = share ? options.budget_share > 0.0 && options.budget_share <= 1.0 : options.rows > 0;
  if (result.ec != std::errc{} || result.ptr != end || !in_range) {
    throw InvalidArgument(fmt::format(
        "policy '{}': expected a share of the uncompressed cache (0.33) or a number of rows per head (512) behind @",
        word));
  }
}

PolicyColumn parse_column(std::string_view whole, const PolicyOptions& base) {
  PolicyColumn column{std::string(whole), base};
  PolicyOptions& options = column.options;
  const std::size_t at = std::min(whole.find('@'), whole.size());
  const std::string_view word = whole.substr(0, at);
  if (at < whole.size()) parse_size(whole, whole.substr(at + 1), options);
  const std::size_t colon = word.find(':');
  const std::string name(word.substr(0, colon));
  const std::string rest(colon == std::string_view::npos ? std::string_view{} : word.substr(colon + 1));
  const bool selects = name == "snapkv" || name == "pyramidkv" || name == "h2o";
  if (rest.empty() && (name == "full" || name == "streaming-llm" || selects)) {
    options.policy = name;
    if (name == "streaming-llm" && options.budget_share > 0.0) {  // the widest window that the share allows
      options.window = kWidestWindow;
      options.window_divisor = 0;
    }
    return column;
  }
  if (rest.empty() && (name == "none" || name == "all")) {
    options.policy = "razor";
    options.heads = name;
    return column;
  }
  if (!rest.empty() && (name == "razor" || name == "razor-nocomp" || name == "razor+snapkv" || name == "razor+h2o")) {
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
      "policy '{}': expected full, none, all, streaming-llm, snapkv, pyramidkv, h2o, razor:HEADS, razor-nocomp:HEADS, "
      "razor+snapkv:HEADS, razor+h2o:HEADS or random:COUNT:SEED, and a size behind @ if any",
      whole));
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

std::vector<Policy> make_policies(const Model& model, const std::vector<PolicyColumn>& columns, std::int64_t tokens,
                                  const Progress& progress) {
  std::vector<Policy> policies;
  policies.reserve(columns.size());
  for (const PolicyColumn& column : columns) {
    PolicyOptions options = column.options;
    if (options.budget_share > 0.0) options.budget_tokens = tokens;
    policies.push_back(Policy::make(model, options, progress));
  }
  return policies;
}

}  // namespace razorkv
