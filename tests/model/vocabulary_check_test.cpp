#include "model/vocabulary_check.h"

#include <ggml.h>
#include <gguf.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "model/chat_template.h"
#include "model/vocabulary.h"
#include "razorkv/error.h"
#include "support/tiny_gguf.h"
#include "support/tiny_vocabulary.h"

namespace razorkv {
namespace {

std::string write(const std::function<void(gguf_context*)>& edit) {
  test::TinyOptions options;
  options.vocabulary = test::kTinyVocabulary;
  test::TinyGguf model(options);
  model.edit_metadata(test::set_tiny_vocabulary);
  model.edit_metadata(edit);
  return model.write_temporary();
}

TEST(VocabularyCheck, GoodOneOpens) {
  const auto vocabulary = Vocabulary::open(write([](gguf_context*) {}));
  EXPECT_EQ(vocabulary->size(), test::kTinyVocabulary);
  EXPECT_EQ(vocabulary->detokenize(vocabulary->tokenize("hé", false, false)), "hé");
  EXPECT_THROW(ChatTemplate{vocabulary}, UnsupportedModel);  // has none
  EXPECT_NO_THROW(ChatTemplate(vocabulary, "chatml"));
}

TEST(VocabularyCheck, TemplatesThatAreNotKnownAreNamed) {
  const auto vocabulary = Vocabulary::open(write([](gguf_context* gguf) {
    gguf_set_val_str(gguf, "tokenizer.chat_template",
                     "{% for i in range(1000000000) %}{{ raise_exception('x') }}{% endfor %}");
  }));
  EXPECT_THROW(ChatTemplate{vocabulary}, UnsupportedModel);
}

TEST(VocabularyCheck, EveryWrongTypeIsRefused) {
  const std::vector<std::string> keys = {
      "tokenizer.ggml.model",        "tokenizer.ggml.tokens",        "tokenizer.ggml.scores",
      "tokenizer.ggml.token_type",   "tokenizer.ggml.merges",        "tokenizer.ggml.pre",
      "tokenizer.chat_template",     "tokenizer.ggml.add_bos_token", "tokenizer.ggml.add_space_prefix",
      "tokenizer.ggml.bos_token_id", "tokenizer.ggml.eos_token_id",  "tokenizer.ggml.eot_token_id"};
  const double number = 1.5;
  for (const std::string& key : keys) {
    const std::vector<std::function<void(gguf_context*)>> wrong = {
        [&](gguf_context* gguf) { gguf_set_val_f32(gguf, key.c_str(), 1.5F); },
        [&](gguf_context* gguf) { gguf_set_arr_data(gguf, key.c_str(), GGUF_TYPE_FLOAT64, &number, 1); },
    };
    for (const auto& edit : wrong) EXPECT_THROW(Vocabulary::open(write(edit)), Error) << key;
  }
}

TEST(VocabularyCheck, BadVocabulariesAreRefused) {
  const auto refused = [](const std::function<void(gguf_context*)>& edit) {
    EXPECT_THROW(Vocabulary::open(write(edit)), Error);
  };
  refused([](gguf_context* gguf) { gguf_set_val_str(gguf, "tokenizer.ggml.model", "no_vocab"); });
  refused([](gguf_context* gguf) { gguf_set_val_str(gguf, "tokenizer.ggml.model", "bert"); });
  refused([](gguf_context* gguf) { gguf_remove_key(gguf, "tokenizer.ggml.tokens"); });
  refused([](gguf_context* gguf) { test::set_tokens(gguf, {}); });
  refused([](gguf_context* gguf) { test::set_tokens(gguf, {"a", "b"}); });
  refused([](gguf_context* gguf) {
    std::vector<std::string> twice = test::tiny_vocabulary();
    twice[7] = twice[280];
    test::set_tokens(gguf, twice);
  });
  refused([](gguf_context* gguf) {
    const float scores[] = {1.0F, 2.0F};
    gguf_set_arr_data(gguf, "tokenizer.ggml.scores", GGUF_TYPE_FLOAT32, scores, 2);
  });
  refused([](gguf_context* gguf) { gguf_set_val_u32(gguf, "tokenizer.ggml.bos_token_id", 300); });
  refused([](gguf_context* gguf) { gguf_set_val_str(gguf, "tokenizer.ggml.model", "gpt2"); });  // without merges
}

}  // namespace
}  // namespace razorkv
