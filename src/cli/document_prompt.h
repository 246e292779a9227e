// The prompt of razorkv ask: a document that is read once, and questions that follow it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/chat_template.h"
#include "razorkv/model.h"

namespace razorkv::cli {

struct DocumentPromptOptions {
  std::string system;         ///< empty = no system message
  std::string chat_template;  ///< empty = the model's own
  bool raw = false;           ///< no chat template
};

/// With a chat template: system message, and a user message that starts with the document. A question is the rest of
/// that message and the start of the answer. Without one (`raw`, or a model that has none): the document, "Question:",
/// "Answer:". Document and question are ordinary text, whatever control tokens they spell.
class DocumentPrompt {
 public:
  /// Throws InvalidArgument for an unknown template.
  DocumentPrompt(const Model& model, const DocumentPromptOptions& options);

  /// Throws InvalidArgument for a blank document.
  std::vector<Token> document(const std::string& text) const;
  /// Tokens to feed after document(). Throws InvalidArgument for a blank question.
  std::vector<Token> question(const std::string& text) const;
  bool has_template() const { return chat_.has_value(); }

 private:
  ChatTemplate::Parts parts(const std::string& document, const std::string& question) const;

  Model model_;
  std::string system_;
  std::optional<ChatTemplate> chat_;
};

}  // namespace razorkv::cli
