#include "support/tiny_vocabulary.h"

#include <ggml.h>
#include <gguf.h>

#include <array>
#include <cstdio>

namespace razorkv::test {

std::vector<std::string> tiny_vocabulary() {
  std::vector<std::string> out = {"<unk>", "<s>", "</s>"};
  for (unsigned byte = 0; byte < 256; ++byte) {
    std::array<char, 8> text{};
    std::snprintf(text.data(), text.size(), "<0x%02X>", byte);
    out.emplace_back(text.data());
  }
  out.emplace_back("▁");
  while (out.size() < kTinyVocabulary) out.push_back("w" + std::to_string(out.size()));
  return out;
}

void set_tokens(gguf_context* gguf, const std::vector<std::string>& tokens) {
  std::vector<const char*> pointers;
  for (const std::string& token : tokens) pointers.push_back(token.c_str());
  gguf_set_arr_str(gguf, "tokenizer.ggml.tokens", pointers.data(), pointers.size());
}

void set_tiny_vocabulary(gguf_context* gguf) {
  gguf_set_val_str(gguf, "tokenizer.ggml.model", "llama");
  set_tokens(gguf, tiny_vocabulary());
  std::vector<float> scores(kTinyVocabulary);
  for (std::size_t i = 0; i < scores.size(); ++i) scores[i] = -static_cast<float>(i);
  gguf_set_arr_data(gguf, "tokenizer.ggml.scores", GGUF_TYPE_FLOAT32, scores.data(), scores.size());
  std::vector<std::int32_t> types(kTinyVocabulary, 1);
  types[0] = 2;
  types[1] = types[2] = 3;
  for (std::size_t i = 3; i < 259; ++i) types[i] = 6;
  gguf_set_arr_data(gguf, "tokenizer.ggml.token_type", GGUF_TYPE_INT32, types.data(), types.size());
}

}  // namespace razorkv::test
