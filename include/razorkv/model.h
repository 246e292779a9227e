// A GGUF model: weights, vocabulary and chat template.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "razorkv/types.h"

namespace razorkv {

struct LoadOptions {
  bool use_mmap = true;  ///< map weights that are used as they lie in the file
  bool repack = true;    ///< let ggml rearrange weights in memory where that makes matrix products faster
};

struct ModelInfo {
  std::string path;
  std::string architecture;
  std::string name;
  std::string fingerprint;  ///< 64 hex digits
  std::int64_t layers = 0;
  std::int64_t query_heads = 0;  ///< over all layers
  std::int64_t kv_heads = 0;     ///< over all layers
  std::int64_t head_width = 0;
  std::int64_t vocabulary = 0;
  std::int64_t context = 0;  ///< tokens the model was trained for
  std::int64_t kv_bytes_per_token_f16 = 0;
  std::size_t mapped_bytes = 0;
  std::size_t copied_bytes = 0;
  std::size_t repacked_bytes = 0;
};

struct ChatMessage {
  std::string role;  ///< "system", "user" or "assistant"
  std::string content;
};

/// Shared handle; cheap to copy, safe to use from several threads.
class Model {
 public:
  /// Throws FileError, UnsupportedModel, OutOfMemory.
  static Model load(const std::string& path, const LoadOptions& options = {});

  ModelInfo info() const;
  /// `add_special`: put the model's BOS (and EOS) where its vocabulary asks for it. `parse_special`: text such as
  /// "<|im_end|>" becomes the control token; leave it off for text from users and files.
  std::vector<Token> tokenize(std::string_view text, bool add_special = true, bool parse_special = false) const;
  /// Text of the tokens; control tokens are left out unless `special`. May end in the middle of a UTF-8 character.
  std::string detokenize(std::span<const Token> tokens, bool special = false) const;
  bool ends_generation(Token token) const;
  /// The conversation in the model's chat template, followed by the start of the assistant's answer. Control-token
  /// text inside a message stays text. Throws UnsupportedModel when the model has no template that is known.
  std::vector<Token> render_chat(std::span<const ChatMessage> messages) const;

  struct Impl;
  const std::shared_ptr<const Impl>& impl() const { return impl_; }

 private:
  explicit Model(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<const Impl> impl_;
};

}  // namespace razorkv
