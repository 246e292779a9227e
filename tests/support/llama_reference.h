// Logits of libllama, the reference that ours are compared with.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace razorkv::test {

struct LlamaReferenceOptions {
  int threads = 1;
  std::int64_t context = 1024;  ///< tokens
  std::int64_t micro_batch = 512;
  bool f16_kv = false;  ///< f32 otherwise
  bool flash = false;   ///< flash attention
  bool repack = true;
};

class LlamaReference {
 public:
  /// Throws std::runtime_error where libllama cannot load the file.
  explicit LlamaReference(const std::string& path, const LlamaReferenceOptions& options = {});
  ~LlamaReference();
  LlamaReference(const LlamaReference&) = delete;
  LlamaReference& operator=(const LlamaReference&) = delete;

  std::int64_t vocabulary() const;
  /// Feeds tokens after those fed before; returns the logits of each of them, [tokens, vocabulary].
  std::vector<float> feed(const std::vector<std::int32_t>& tokens);
  /// Token ids of a text, with the model's own start token where it has one.
  std::vector<std::int32_t> tokenize(const std::string& text) const;
  /// Forgets all tokens.
  void reset();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace razorkv::test
