#include "cli/document_prompt.h"

#include <algorithm>
#include <cctype>

#include "engine/model_handle.h"
#include "razorkv/error.h"

namespace razorkv::cli {
namespace {

bool blank(const std::string& text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; });
}

}  // namespace

DocumentPrompt::DocumentPrompt(const Model& model, const DocumentPromptOptions& options)
    : model_(model), system_(options.system) {
  if (options.raw) return;
  try {
    chat_.emplace(model.impl()->vocabulary, options.chat_template);
  } catch (const UnsupportedModel&) {
    // Base models have no template; their questions go in as plain text.
  }
}

ChatTemplate::Parts DocumentPrompt::parts(const std::string& document, const std::string& question) const {
  std::vector<ChatMessage> messages;
  if (!system_.empty()) messages.push_back({"system", system_});
  messages.push_back({"user", document});
  return chat_->render_parts(messages, "\n\n" + question);
}

std::vector<Token> DocumentPrompt::document(const std::string& text) const {
  if (blank(text)) throw InvalidArgument("the document is empty; give a file with text");
  if (chat_) return parts(text, "question").head;
  const Vocabulary& vocabulary = *model_.impl()->vocabulary;
  std::vector<Token> tokens = vocabulary.tokenize(text, false, false);
  if (vocabulary.adds_bos()) tokens.insert(tokens.begin(), vocabulary.bos());
  return tokens;
}

std::vector<Token> DocumentPrompt::question(const std::string& text) const {
  if (blank(text)) throw InvalidArgument("the question is empty");
  if (chat_) return parts("document", text).tail;
  return model_.impl()->vocabulary->tokenize("\n\nQuestion: " + text + "\nAnswer:", false, false);
}

}  // namespace razorkv::cli
