#include "model/vocabulary_check.h"

#include <ggml.h>
#include <gguf.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "model/chat_template.h"
#include "model/vocabulary.h"
#include "razorkv/error.h"
#include "support/tiny_gguf.h"

namespace razorkv {
namespace {

constexpr std::int64_t kTokens = 300;

// A SentencePiece vocabulary: <unk>, <s>, </s>, the bytes, then letters.
std::vector<std::string> texts() {
  std::vector<std::string> out = {"<unk>", "<s>", "</s>"};
  for (int byte = 0; byte < 256; ++byte) {
    char text[8];
    std::snprintf(text, sizeof text, "<0x%02X>", static_cast<unsigned>(byte));
    out.emplace_back(text);
  }
  out.emplace_back("▁");
  while (out.size() < kTokens) out.push_back("w" + std::to_string(out.size()));
  return out;
}

void set_tokens(gguf_context* gguf, const std::vector<std::string>& tokens) {
  std::vector<const char*> pointers;
  for (const std::string& token : tokens) pointers.push_back(token.c_str());
  gguf_set_arr_str(gguf, "tokenizer.ggml.tokens", pointers.data(), pointers.size());
}

void set_vocabulary(gguf_context* gguf) {
  gguf_set_val_str(gguf, "tokenizer.ggml.model", "llama");
  set_tokens(gguf, texts());
  std::vector<float> scores(kTokens);
  for (std::size_t i = 0; i < scores.size(); ++i) scores[i] = -static_cast<float>(i);
  gguf_set_arr_data(gguf, "tokenizer.ggml.scores", GGUF_TYPE_FLOAT32, scores.data(), scores.size());
  std::vector<std::int32_t> types(kTokens, 1);
  types[0] = 2;
  types[1] = types[2] = 3;
  for (std::size_t i = 3; i < 259; ++i) types[i] = 6;
  gguf_set_arr_data(gguf, "tokenizer.ggml.token_type", GGUF_TYPE_INT32, types.data(), types.size());
}

std::string write(const std::function<void(gguf_context*)>& edit) {
  test::TinyOptions options;
  options.vocabulary = kTokens;
  test::TinyGguf model(options);
  model.edit_metadata(set_vocabulary);
  model.edit_metadata(edit);
  return model.write_temporary();
}

TEST(VocabularyCheck, GoodOneOpens) {
  const auto vocabulary = Vocabulary::open(write([](gguf_context*) {}));
  EXPECT_EQ(vocabulary->size(), kTokens);
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
  refused([](gguf_context* gguf) { set_tokens(gguf, {}); });
  refused([](gguf_context* gguf) { set_tokens(gguf, {"a", "b"}); });
  refused([](gguf_context* gguf) {
    std::vector<std::string> twice = texts();
    twice[7] = twice[280];
    set_tokens(gguf, twice);
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
