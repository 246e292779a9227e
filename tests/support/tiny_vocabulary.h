// A SentencePiece vocabulary for tiny models: <unk>, <s>, </s>, the 256 bytes, and words.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

struct gguf_context;

namespace razorkv::test {

inline constexpr std::int64_t kTinyVocabulary = 300;

/// Texts of its tokens.
std::vector<std::string> tiny_vocabulary();
/// Replaces the metadata key tokenizer.ggml.tokens.
void set_tokens(gguf_context* gguf, const std::vector<std::string>& tokens);
/// For TinyGguf::edit_metadata() of a model with kTinyVocabulary tokens.
void set_tiny_vocabulary(gguf_context* gguf);

}  // namespace razorkv::test
