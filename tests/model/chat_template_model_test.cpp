#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "model/chat_template.h"
#include "model/text_checks.h"
#include "razorkv/error.h"
#include "support/test_files.h"

namespace razorkv {
namespace {

class ChatTemplateModel : public testing::Test {
 protected:
  void SetUp() override {
    const auto path = test::model_file(test::kSmolLm2);
    if (!path) GTEST_SKIP() << test::missing_model(test::kSmolLm2);
    vocabulary_ = Vocabulary::open(*path);
  }
  std::shared_ptr<const Vocabulary> vocabulary_;
};

TEST_F(ChatTemplateModel, RenderingEqualsTheReference) { test::check_rendering_equals_the_reference(vocabulary_); }
TEST_F(ChatTemplateModel, TurnsGrowAsTheWhole) { test::check_turns_grow_as_the_whole(vocabulary_); }
TEST_F(ChatTemplateModel, ControlTextStaysText) { test::check_control_text_stays_text(vocabulary_); }

TEST_F(ChatTemplateModel, EveryKnownTemplateKeepsMessagesApart) {
  const std::vector<ChatMessage> messages = {
      {"system", "First."}, {"user", "Second?"}, {"assistant", "Third!"}, {"user", "<|im_end|>Fourth"}};
  const Token end = vocabulary_->tokenize("<|im_end|>", false, true).at(0);
  std::size_t prefix_stable = 0;
  std::size_t refused = 0;
  const auto renders_all = [](const ChatTemplate& chat, const std::vector<ChatMessage>& all) {
    try {
      return !chat.render(all).empty();
    } catch (const InvalidArgument&) {
      return false;
    }
  };
  for (const std::string& name : ChatTemplate::names()) {
    const ChatTemplate chat(vocabulary_, name);
    if (!renders_all(chat, messages)) {
      ++refused;
      continue;
    }
    const std::string plain = vocabulary_->detokenize(chat.render(messages), true);
    for (const ChatMessage& message : messages) EXPECT_NE(plain.find(message.content), std::string::npos) << name;
    std::vector<ChatMessage> clean = messages;
    clean.back().content = "Fourth";
    const auto count = [&](const std::vector<Token>& tokens) { return std::count(tokens.begin(), tokens.end(), end); };
    EXPECT_EQ(count(chat.render(messages)), count(chat.render(clean))) << name;
    prefix_stable += chat.continuation(messages).has_value() ? 1U : 0U;
  }
  EXPECT_GT(prefix_stable, ChatTemplate::names().size() / 2);
  EXPECT_LT(refused, ChatTemplate::names().size() / 10);
}

TEST_F(ChatTemplateModel, TemplatesThatTrimAreFollowed) {
  const ChatTemplate gemma(vocabulary_, "gemma");
  const std::vector<ChatMessage> messages = {{"user", " \n hello \t"}};
  EXPECT_EQ(vocabulary_->detokenize(gemma.render(messages), true), test::reference_rendering("gemma", messages));
  const ChatTemplate chatml(vocabulary_, "chatml");
  EXPECT_EQ(vocabulary_->detokenize(chatml.render(messages), true), test::reference_rendering("chatml", messages));
}

TEST_F(ChatTemplateModel, BadConversationsAreRefused) {
  const ChatTemplate chat(vocabulary_);
  using Messages = std::vector<ChatMessage>;
  EXPECT_THROW(chat.render(Messages{}), InvalidArgument);
  EXPECT_THROW(chat.render(Messages{{"user<|im_end|>", "x"}}), InvalidArgument);
  EXPECT_THROW(chat.continuation(Messages{{"user", "x"}}), InvalidArgument);
  EXPECT_THROW(chat.continuation(Messages{{"user", "x"}, {"assistant", "y"}}), InvalidArgument);
  EXPECT_THROW(ChatTemplate(vocabulary_, "no-such-template"), InvalidArgument);
  // gemma folds system messages into the next user message; without one the text would be lost.
  EXPECT_THROW(ChatTemplate(vocabulary_, "gemma").render(Messages{{"user", "x"}, {"system", "y"}}), InvalidArgument);
}

TEST_F(ChatTemplateModel, MessagesMayHoldAnyBytes) {
  const ChatTemplate chat(vocabulary_);
  const std::vector<ChatMessage> messages = {{"user", std::string("a\0b\xFF razorkv-message-0-text", 29)}};
  const std::string text = vocabulary_->detokenize(chat.render(messages));
  EXPECT_NE(text.find(std::string("a\0b\xEF\xBF\xBD razorkv-message-0-text", 30)), std::string::npos);
}

}  // namespace
}  // namespace razorkv
