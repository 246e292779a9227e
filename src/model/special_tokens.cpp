#include "model/special_tokens.h"

#include <algorithm>
#include <cctype>
#include <map>

namespace razorkv {

SpecialTokens::SpecialTokens(std::vector<SpecialToken> tokens) : tokens_(std::move(tokens)) {
  std::erase_if(tokens_, [](const SpecialToken& token) { return token.text.empty(); });
  std::stable_sort(tokens_.begin(), tokens_.end(), [](const SpecialToken& a, const SpecialToken& b) {
    return a.text.size() != b.text.size() ? a.text.size() > b.text.size() : a.id < b.id;
  });
  nodes_.emplace_back();
  token_of_node_.push_back(-1);
  for (std::size_t i = 0; i < tokens_.size(); ++i) {
    std::uint32_t node = 0;
    for (const char c : tokens_[i].text) {
      const auto byte = static_cast<unsigned char>(c);
      auto& edges = nodes_[node];
      const auto edge = std::find_if(edges.begin(), edges.end(), [&](const auto& e) { return e.first == byte; });
      if (edge != edges.end()) {
        node = edge->second;
      } else {
        const auto next = static_cast<std::uint32_t>(nodes_.size());
        edges.emplace_back(byte, next);
        nodes_.emplace_back();
        token_of_node_.push_back(-1);
        node = next;
      }
    }
    if (token_of_node_[node] < 0) token_of_node_[node] = static_cast<std::int32_t>(i);
  }
  for (const SpecialToken& token : tokens_) {
    shorter_.push_back(longest_at(std::string_view(token.text).substr(0, token.text.size() - 1), 0));
  }
}

std::int32_t SpecialTokens::longest_at(std::string_view text, std::size_t begin) const {
  std::int32_t longest = -1;
  std::uint32_t node = 0;
  for (std::size_t i = begin; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const auto& edges = nodes_[node];
    const auto edge = std::find_if(edges.begin(), edges.end(), [&](const auto& e) { return e.first == byte; });
    if (edge == edges.end()) break;
    node = edge->second;
    if (token_of_node_[node] >= 0) longest = token_of_node_[node];
  }
  return longest;
}

std::vector<TextPiece> SpecialTokens::split(std::string_view text, const Allowed& allowed) const {
  // Places by the longest token that is still possible there: token 0 is settled first, in order of place, and a place
  // that does not get its token falls to its next shorter one. Memory and time stay linear in runs of one character,
  // where a vocabulary with tokens for 2 to 31 newlines has 30 candidates at every place.
  std::map<std::int32_t, std::vector<std::size_t>> places;
  if (!tokens_.empty()) {
    for (std::size_t i = 0; i < text.size(); ++i) {
      const std::int32_t token = longest_at(text, i);
      if (token >= 0) places[token].push_back(i);
    }
  }
  const auto space = [&](std::size_t i) { return std::isspace(static_cast<unsigned char>(text[i])) != 0; };
  std::vector<bool> taken(places.empty() ? 0 : text.size(), false);
  std::vector<bool> cut(taken.size(), false);  // plain text is cut before this byte
  std::map<std::size_t, TextPiece> tokens;     // by begin
  const auto settle = [&](const SpecialToken& token, std::size_t begin) {
    const std::size_t end = begin + token.text.size();
    bool free = true;
    for (std::size_t i = begin; i < end && free; ++i) free = !taken[i];
    if (!free) return false;
    if (!allowed(token, begin, end)) {
      std::size_t inside = begin + 1;
      while (inside < end && (static_cast<unsigned char>(text[inside]) & 0xC0U) == 0x80U) ++inside;
      if (token.user_defined && inside < end) cut[inside] = true;
      return false;
    }
    for (std::size_t i = begin; i < end; ++i) taken[i] = true;
    if (token.strip_left) {
      for (std::size_t i = begin; i > 0 && !taken[i - 1] && space(i - 1); --i) taken[i - 1] = true;
    }
    if (token.strip_right) {
      for (std::size_t i = end; i < text.size() && !taken[i] && space(i); ++i) taken[i] = true;
    }
    tokens[begin] = {token.id, begin, end};
    return true;
  };
  while (!places.empty()) {
    auto first = places.extract(places.begin());
    std::vector<std::size_t>& here = first.mapped();
    std::sort(here.begin(), here.end());
    const std::int32_t shorter = shorter_[static_cast<std::size_t>(first.key())];
    for (const std::size_t begin : here) {
      if (settle(tokens_[static_cast<std::size_t>(first.key())], begin)) continue;
      if (shorter >= 0 && !taken[begin]) places[shorter].push_back(begin);
    }
  }

  std::vector<TextPiece> pieces;
  std::size_t i = 0;
  auto token = tokens.begin();
  while (i < text.size()) {
    if (token != tokens.end() && token->first == i) {
      pieces.push_back(token->second);
      i = token->second.end;
      ++token;
      continue;
    }
    if (!taken.empty() && taken[i]) {  // stripped white space
      ++i;
      continue;
    }
    std::size_t end = i + 1;
    if (taken.empty()) {
      end = text.size();
    } else {
      while (end < text.size() && !taken[end] && !cut[end]) ++end;
    }
    pieces.push_back({-1, i, end});
    i = end;
  }
  return pieces;
}

}  // namespace razorkv
