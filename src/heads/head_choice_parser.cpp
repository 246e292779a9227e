#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "heads/head_selection.h"
#include "razorkv/error.h"

namespace razorkv {
namespace {

constexpr const char* kExpected =
    "expected paper, safe, wide, all, none, two shares (0.3+0.02), a list (16:0,9:1), random:SEED, random:SEED:COUNT "
    "or random:SEED:SHARES";

[[noreturn]] void refuse(std::string_view text, const std::string& reason) {
  throw InvalidArgument(fmt::format("--heads '{}': {}; {}", text, reason, kExpected));
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  std::size_t begin = 0;
  for (std::size_t end = text.find(separator); end != std::string_view::npos; end = text.find(separator, begin)) {
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  parts.push_back(text.substr(begin));
  return parts;
}

template <typename T>
std::optional<T> whole_number(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<ShareChoice> preset(std::string_view text) {
  if (text == "paper") return kPaperShares;
  if (text == "safe") return kSafeShares;
  if (text == "wide") return kWideShares;
  return std::nullopt;
}

std::optional<ShareChoice> shares(std::string_view whole, std::string_view text) {
  if (const auto named = preset(text)) return named;
  const std::vector<std::string_view> parts = split(text, '+');
  if (parts.size() != 2) return std::nullopt;
  const auto induction = whole_number<double>(parts[0]);
  const auto echo = whole_number<double>(parts[1]);
  if (!induction || !echo) refuse(whole, fmt::format("'{}' is not two numbers", text));
  for (const double share : {*induction, *echo}) {
    if (!(share >= 0.0 && share <= 1.0)) refuse(whole, fmt::format("share {} is not within 0 and 1", share));
  }
  return ShareChoice{*induction, *echo};
}

RandomChoice random_choice(std::string_view text) {
  const std::vector<std::string_view> parts = split(text, ':');
  if (parts.size() < 2 || parts.size() > 3) refuse(text, "wrong number of fields");
  const auto seed = whole_number<std::uint64_t>(parts[1]);
  if (!seed) refuse(text, fmt::format("'{}' is not a seed", parts[1]));
  if (parts.size() == 2) return {*seed, kWideShares};
  if (const auto of_shares = shares(text, parts[2])) return {*seed, *of_shares};
  const auto count = whole_number<std::int64_t>(parts[2]);
  if (!count || *count < 0) refuse(text, fmt::format("'{}' is neither a count nor shares", parts[2]));
  return {*seed, *count};
}

/// -1 where the text is no such number.
std::int64_t index_or_minus_one(std::string_view text) { return whole_number<std::int64_t>(text).value_or(-1); }

ListChoice list_choice(std::string_view text) {
  ListChoice list;
  for (const std::string_view item : split(text, ',')) {
    const std::vector<std::string_view> parts = split(item, ':');
    const HeadId head{index_or_minus_one(parts.front()), index_or_minus_one(parts.back())};
    if (parts.size() != 2 || head.layer < 0 || head.kv_head < 0) {
      refuse(text, fmt::format("'{}' is not LAYER:HEAD", item));
    }
    list.heads.push_back(head);
  }
  std::sort(list.heads.begin(), list.heads.end());
  const auto twice = std::adjacent_find(list.heads.begin(), list.heads.end());
  if (twice != list.heads.end()) refuse(text, fmt::format("{}:{} occurs twice", twice->layer, twice->kv_head));
  return list;
}

}  // namespace

HeadChoice parse_head_choice(std::string_view text) {
  const std::string given(text);
  if (text == "all") return {given, AllChoice{}};
  if (text == "none") return {given, NoneChoice{}};
  if (text.substr(0, 6) == "random") return {given, random_choice(text)};
  if (const auto found = shares(text, text)) return {given, *found};
  return {given, list_choice(text)};
}

}  // namespace razorkv
