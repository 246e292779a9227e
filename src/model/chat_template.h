// Conversations to tokens, by the chat template of the model.
//
// libllama recognises the model's template among those it knows; Jinja is not evaluated, so a template cannot loop,
// fail or raise. System messages are folded as libllama does it (into the first user turn where the model knows no
// system role).
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/vocabulary.h"
#include "razorkv/model.h"

namespace razorkv {

/// Immutable, safe to use from several threads.
class ChatTemplate {
 public:
  /// `name`: one of names(), instead of the model's own template. Throws UnsupportedModel when the model has no
  /// template or one that is not known, InvalidArgument for an unknown name.
  explicit ChatTemplate(std::shared_ptr<const Vocabulary> vocabulary, const std::string& name = {});

  /// Names that libllama knows, such as "chatml", "llama3", "gemma".
  static std::vector<std::string> names();

  /// Tokens of the conversation, BOS first where the vocabulary asks for it, then (`add_answer`) the start of the
  /// assistant's next message. Text of control tokens inside a message stays ordinary text: only the template makes
  /// control tokens. For messages without such text, equal to tokenising the whole rendered text.
  /// Throws InvalidArgument: no message, a role other than system, user, assistant, or a message that the template
  /// would leave out.
  std::vector<Token> render(std::span<const ChatMessage> messages, bool add_answer = true) const;

  /// A prompt in two parts, each tokenised on its own.
  struct Parts {
    std::vector<Token> head;  ///< as render(), up to the end of the last message's text
    std::vector<Token> tail;  ///< from there on, to the start of the assistant's next message
  };
  /// As render() of `messages` with `ending` added to the text of the last one, cut where it begins: `tail` does not
  /// depend on what stands before, so one head serves many endings. White space at the end of `ending` is dropped.
  /// Throws as render(), and InvalidArgument when the last message or `ending` is empty or blank.
  Parts render_parts(std::span<const ChatMessage> messages, std::string_view ending) const;

  /// For a context that holds render() of the messages before the last assistant message, followed by that message's
  /// text as it was generated, without an end-of-generation token: what to append so that the context holds the whole
  /// conversation and the start of the next answer. Empty optional: the template is not prefix-stable here (an older
  /// part of the text changes as turns are added), so the conversation must be rendered anew.
  /// Throws as render(), and InvalidArgument when no message follows an assistant message.
  std::optional<std::vector<Token>> continuation(std::span<const ChatMessage> messages) const;

 private:
  struct Rendered;
  std::vector<Token> with_bos(std::vector<Token> tokens) const;
  Rendered lay_out(std::span<const ChatMessage> messages, bool add_answer) const;
  std::vector<Token> tokenize(const Rendered& rendered, std::size_t begin, std::size_t end) const;

  std::shared_ptr<const Vocabulary> vocabulary_;
  std::string template_;
  std::set<Token> markers_;  // user-defined tokens that the template uses; in messages they stay text as well
};

}  // namespace razorkv
