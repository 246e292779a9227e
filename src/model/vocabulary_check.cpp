#include "model/vocabulary_check.h"

#include <cstring>
#include <string>
#include <unordered_set>

#include "base/utf8.h"
#include "razorkv/error.h"

namespace razorkv {
namespace {

const GgufValue* find_array(const GgufFile& file, const char* key, std::initializer_list<GgufType> elements) {
  const GgufValue* value = file.find(key);
  if (value == nullptr) return nullptr;
  std::string expected;
  for (const GgufType element : elements) {
    if (value->type == GgufType::array && value->element == element) return value;
    expected += (expected.empty() ? "" : " or ") + std::string(gguf_type_name(element));
  }
  file.fail(std::string("metadata key '") + key + "': expected an array of " + expected + ", found " +
            (value->type == GgufType::array ? "an array of " : "") + gguf_type_name(value->element));
}

void check_count(const GgufFile& file, const char* key, const GgufValue* value, std::uint64_t tokens) {
  if (value != nullptr && value->count != tokens) {
    file.fail(std::string("metadata key '") + key + "': expected " + std::to_string(tokens) +
              " elements, one per token, found " + std::to_string(value->count));
  }
}

void check_texts_differ(const GgufFile& file, const GgufValue& tokens) {
  std::unordered_set<std::string> texts;
  texts.reserve(tokens.count);
  std::span<const std::byte> rest = file.bytes().subspan(tokens.offset);
  for (std::uint64_t i = 0; i < tokens.count; ++i) {
    std::uint64_t length = 0;
    std::memcpy(&length, rest.data(), sizeof length);  // in bounds: the reader of the file has been through the array
    rest = rest.subspan(sizeof length);
    std::string text(reinterpret_cast<const char*>(rest.data()), length);
    rest = rest.subspan(length);
    if (text.find('\0') != std::string::npos) text.resize(text.find('\0'));  // libllama stops there
    if (text.empty()) text = "[EMPTY_" + std::to_string(i) + "]";            // libllama's name for it
    if (!texts.insert(text).second) {
      file.fail("metadata key 'tokenizer.ggml.tokens': expected texts that differ, found '" +
                replace_invalid_utf8(text.substr(0, 64)) + "' again at index " + std::to_string(i));
    }
  }
}

}  // namespace

void check_vocabulary(const GgufFile& file) {
  const std::string kind(file.require_string("tokenizer.ggml.model"));
  if (kind != "llama" && kind != "gpt2") {
    throw UnsupportedModel("'" + file.name() + "': expected the vocabulary kind (tokenizer.ggml.model) 'llama' " +
                           "(SentencePiece) or 'gpt2' (BPE), found '" + replace_invalid_utf8(kind.substr(0, 64)) +
                           "'; choose another model");
  }
  const GgufValue* tokens = find_array(file, "tokenizer.ggml.tokens", {GgufType::string});
  if (tokens == nullptr) file.fail("metadata key 'tokenizer.ggml.tokens' is missing; convert the model anew");
  if (tokens->count == 0 || tokens->count > 16'000'000) {
    file.fail("expected 1 to 16000000 tokens in the vocabulary, found " + std::to_string(tokens->count));
  }
  const GgufValue* scores = find_array(file, "tokenizer.ggml.scores", {GgufType::f32, GgufType::i32});
  check_count(file, "tokenizer.ggml.scores", scores, tokens->count);
  const GgufValue* types = find_array(file, "tokenizer.ggml.token_type", {GgufType::i32});
  check_count(file, "tokenizer.ggml.token_type", types, tokens->count);
  const GgufValue* merges = find_array(file, "tokenizer.ggml.merges", {GgufType::string});
  if (kind == "gpt2" && merges == nullptr) {
    file.fail("metadata key 'tokenizer.ggml.merges' is missing; a BPE vocabulary needs it; convert the model anew");
  }
  for (const char* key : {"tokenizer.ggml.pre", "tokenizer.chat_template", "general.name", "general.architecture"}) {
    file.find_string(key);
  }
  for (const char* key :
       {"tokenizer.ggml.add_bos_token", "tokenizer.ggml.add_eos_token", "tokenizer.ggml.add_sep_token",
        "tokenizer.ggml.add_space_prefix", "tokenizer.ggml.remove_extra_whitespaces"}) {
    file.find_bool(key);
  }
  for (const char* key :
       {"tokenizer.ggml.bos_token_id", "tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id"}) {
    if (const auto id = file.find_unsigned(key); id && *id >= tokens->count && *id != 0xFFFFFFFFU) {
      file.fail(std::string("metadata key '") + key + "': expected a token from 0 to " +
                std::to_string(tokens->count - 1) + ", found " + std::to_string(*id));
    }
  }
  check_texts_differ(file, *tokens);
  const GgufTensor* embedding = file.find_tensor("token_embd.weight");
  if (embedding != nullptr && static_cast<std::uint64_t>(embedding->shape[1]) != tokens->count) {
    file.fail("expected as many tokens in the vocabulary as rows in tensor 'token_embd.weight' (" +
              std::to_string(embedding->shape[1]) + "), found " + std::to_string(tokens->count));
  }
}

}  // namespace razorkv
