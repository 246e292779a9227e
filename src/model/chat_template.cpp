#include "model/chat_template.h"

#include <llama.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <climits>

#include "base/utf8.h"
#include "razorkv/error.h"

namespace razorkv {
namespace {

struct Range {
  std::size_t begin = 0;
  std::size_t end = 0;
};

// Stands for the text of a message while libllama renders. The vertical tabs tell whether a template trims its
// messages.
std::string placeholder(std::size_t index) { return "razorkv-message-" + std::to_string(index) + "-text"; }

bool space(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }

std::string joined(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "" : ", ") + name;
  return out;
}

/// Text that libllama renders; empty: it does not know the template.
std::string apply(const std::string& text, std::span<const llama_chat_message> messages, bool add_answer) {
  std::string out(1024, '\0');
  for (;;) {
    const std::int32_t length = llama_chat_apply_template(text.c_str(), messages.data(), messages.size(), add_answer,
                                                          out.data(), static_cast<std::int32_t>(out.size()));
    if (length < 0) return {};
    const bool fits = static_cast<std::size_t>(length) <= out.size();
    out.resize(static_cast<std::size_t>(length));
    if (fits) return out;
  }
}

}  // namespace

struct ChatTemplate::Rendered {
  std::string text;
  std::vector<Range> contents;  // of each message, in the order of the messages
};

std::vector<std::string> ChatTemplate::names() {
  const std::int32_t count = llama_chat_builtin_templates(nullptr, 0);
  std::vector<const char*> names(static_cast<std::size_t>(std::max(count, 0)));
  llama_chat_builtin_templates(names.data(), names.size());
  return {names.begin(), names.end()};
}

ChatTemplate::ChatTemplate(std::shared_ptr<const Vocabulary> vocabulary, const std::string& name)
    : vocabulary_(std::move(vocabulary)), template_(name) {
  const std::vector<std::string> known = names();
  if (!name.empty() && std::find(known.begin(), known.end(), name) == known.end()) {
    throw InvalidArgument("chat template '" + name + "' is not known; known are " + joined(known));
  }
  if (name.empty()) template_ = vocabulary_->chat_template();
  const char* advice =
      "; choose one by name (--chat-template, for example chatml) or use the raw prompt without a template";
  if (template_.empty()) throw UnsupportedModel(std::string("the model has no chat template") + advice);
  const std::array<llama_chat_message, 4> probe = {{{"system", "s"}, {"user", "u"}, {"assistant", "a"}, {"user", "v"}}};
  const std::string rendered = apply(template_, probe, true);
  if (rendered.empty()) {
    throw UnsupportedModel(std::string("the model's chat template is not one of those that are known") + advice);
  }
  const auto marker = [](const SpecialToken& token) {
    return std::any_of(token.text.begin(), token.text.end(),
                       [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; });
  };
  vocabulary_->special_tokens().split(rendered, [&](const SpecialToken& token, std::size_t, std::size_t) {
    if (token.user_defined && marker(token)) markers_.insert(token.id);
    return true;
  });
  for (const SpecialToken& token : vocabulary_->special_tokens().tokens()) {
    if (token.user_defined && vocabulary_->is_end_of_generation(token.id)) markers_.insert(token.id);
  }
}

ChatTemplate::Rendered ChatTemplate::lay_out(std::span<const ChatMessage> messages, bool add_answer) const {
  if (messages.empty()) throw InvalidArgument("a conversation needs at least one message, found none");
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const std::string& role = messages[i].role;
    if (role != "system" && role != "user" && role != "assistant") {
      throw InvalidArgument("message " + std::to_string(i) + " has role '" + replace_invalid_utf8(role) +
                            "'; expected system, user or assistant");
    }
    texts.push_back("\v" + placeholder(i) + "\v");
  }
  std::vector<llama_chat_message> chat;
  for (std::size_t i = 0; i < messages.size(); ++i) chat.push_back({messages[i].role.c_str(), texts[i].c_str()});
  const std::string frame = apply(template_, chat, add_answer);

  struct Place {
    std::size_t message = 0;
    Range range;
    bool trim_left = false;
    bool trim_right = false;
  };
  std::vector<Place> places;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const std::string key = placeholder(i);
    const std::size_t begin = frame.find(key);
    if (begin == std::string::npos || frame.find(key, begin + 1) != std::string::npos) {
      throw InvalidArgument("the model's chat template " +
                            std::string(begin == std::string::npos ? "leaves out" : "repeats") + " message " +
                            std::to_string(i) + " (" + messages[i].role +
                            "); put messages in the order system, user, " + "assistant, user, ...");
    }
    Place place{i, {begin, begin + key.size()}, true, true};
    if (begin > 0 && frame[begin - 1] == '\v') {
      place.trim_left = false;
      --place.range.begin;
    }
    if (place.range.end < frame.size() && frame[place.range.end] == '\v') {
      place.trim_right = false;
      ++place.range.end;
    }
    places.push_back(place);
  }
  std::sort(places.begin(), places.end(), [](const Place& a, const Place& b) { return a.range.begin < b.range.begin; });

  Rendered out;
  out.contents.resize(messages.size());
  std::size_t done = 0;
  for (const Place& place : places) {
    out.text.append(frame, done, place.range.begin - done);
    done = place.range.end;
    std::string content = replace_invalid_utf8(messages[place.message].content);
    if (place.trim_right) {
      while (!content.empty() && space(content.back())) content.pop_back();
    }
    if (place.trim_left) content.erase(content.begin(), std::find_if_not(content.begin(), content.end(), space));
    out.contents[place.message] = {out.text.size(), out.text.size() + content.size()};
    out.text += content;
  }
  out.text.append(frame, done);
  return out;
}

std::vector<Token> ChatTemplate::tokenize(const Rendered& rendered, std::size_t begin, std::size_t end) const {
  std::vector<Range> contents = rendered.contents;
  std::sort(contents.begin(), contents.end(), [](const Range& a, const Range& b) { return a.begin < b.begin; });
  const auto touches_content = [&](std::size_t from, std::size_t to) {
    const auto next = std::upper_bound(contents.begin(), contents.end(), from,
                                       [](std::size_t place, const Range& range) { return place < range.end; });
    return next != contents.end() && next->begin < to && next->begin < next->end;
  };
  return vocabulary_->tokenize(std::string_view(rendered.text).substr(begin, end - begin),
                               [&](const SpecialToken& token, std::size_t from, std::size_t to) {
                                 if (token.user_defined && !markers_.contains(token.id)) return true;
                                 return !touches_content(begin + from, begin + to);
                               });
}

std::vector<Token> ChatTemplate::render(std::span<const ChatMessage> messages, bool add_answer) const {
  const Rendered rendered = lay_out(messages, add_answer);
  return with_bos(tokenize(rendered, 0, rendered.text.size()));
}

std::vector<Token> ChatTemplate::with_bos(std::vector<Token> out) const {
  const Token bos = vocabulary_->bos();
  if (vocabulary_->adds_bos() && (out.empty() || out.front() != bos)) out.insert(out.begin(), bos);
  return out;
}

ChatTemplate::Parts ChatTemplate::render_parts(std::span<const ChatMessage> messages, std::string_view ending) const {
  const auto blank = [](std::string_view text) { return std::all_of(text.begin(), text.end(), space); };
  if (messages.empty() || blank(messages.back().content) || blank(ending)) {
    throw InvalidArgument("a prompt in two parts needs text in its last message and in its ending, found none");
  }
  while (space(ending.back())) ending.remove_suffix(1);
  const std::string valid_ending = replace_invalid_utf8(ending);
  std::vector<ChatMessage> whole(messages.begin(), messages.end());
  whole.back().content = replace_invalid_utf8(whole.back().content) + valid_ending;
  const Rendered rendered = lay_out(whole, true);
  const std::size_t cut = rendered.contents.back().end - valid_ending.size();
  return {with_bos(tokenize(rendered, 0, cut)), tokenize(rendered, cut, rendered.text.size())};
}

std::optional<std::vector<Token>> ChatTemplate::continuation(std::span<const ChatMessage> messages) const {
  std::size_t answer = messages.size();
  for (std::size_t i = 0; i < messages.size(); ++i) {
    if (messages[i].role == "assistant") answer = i;
  }
  if (answer == 0 || answer + 1 >= messages.size()) {
    throw InvalidArgument("to go on, a conversation needs an assistant message with messages before and behind it");
  }
  const Rendered whole = lay_out(messages, true);
  const Rendered before = lay_out(messages.first(answer), true);
  const Range range = whole.contents[answer];
  if (whole.text.compare(0, range.begin, before.text) != 0) return std::nullopt;
  return tokenize(whole, range.end, whole.text.size());
}

}  // namespace razorkv
