#include "support/llama_reference.h"

#include <llama.h>

#include <algorithm>
#include <stdexcept>

#include "model/library_log.h"

namespace razorkv::test {
namespace {

struct ModelFree {
  void operator()(llama_model* model) const { llama_model_free(model); }
};
struct ContextFree {
  void operator()(llama_context* context) const { llama_free(context); }
};

}  // namespace

struct LlamaReference::Impl {
  std::unique_ptr<llama_model, ModelFree> model;
  std::unique_ptr<llama_context, ContextFree> context;
  std::int32_t fed = 0;
};

LlamaReference::LlamaReference(const std::string& path, const LlamaReferenceOptions& options)
    : impl_(std::make_unique<Impl>()) {
  silence_library_logs();
  llama_model_params model = llama_model_default_params();
  model.use_extra_bufts = options.repack;
  impl_->model.reset(llama_model_load_from_file(path.c_str(), model));
  if (!impl_->model) throw std::runtime_error("libllama cannot load " + path);
  llama_context_params context = llama_context_default_params();
  context.n_ctx = static_cast<std::uint32_t>(options.context);
  context.n_batch = static_cast<std::uint32_t>(options.context);
  context.n_ubatch = static_cast<std::uint32_t>(options.micro_batch);
  context.n_threads = options.threads;
  context.n_threads_batch = options.threads;
  context.flash_attn_type = options.flash ? LLAMA_FLASH_ATTN_TYPE_ENABLED : LLAMA_FLASH_ATTN_TYPE_DISABLED;
  context.type_k = options.f16_kv ? GGML_TYPE_F16 : GGML_TYPE_F32;
  context.type_v = context.type_k;
  context.swa_full = true;
  impl_->context.reset(llama_init_from_model(impl_->model.get(), context));
  if (!impl_->context) throw std::runtime_error("libllama cannot make a context for " + path);
}

LlamaReference::~LlamaReference() = default;

std::int64_t LlamaReference::vocabulary() const {
  return llama_vocab_n_tokens(llama_model_get_vocab(impl_->model.get()));
}

std::vector<float> LlamaReference::feed(const std::vector<std::int32_t>& tokens) {
  const auto count = static_cast<std::int32_t>(tokens.size());
  llama_batch batch = llama_batch_init(count, 0, 1);
  batch.n_tokens = count;
  for (std::int32_t i = 0; i < count; ++i) {
    batch.token[i] = tokens[static_cast<std::size_t>(i)];
    batch.pos[i] = impl_->fed + i;
    batch.n_seq_id[i] = 1;
    batch.seq_id[i][0] = 0;
    batch.logits[i] = 1;
  }
  const std::int32_t status = llama_decode(impl_->context.get(), batch);
  llama_batch_free(batch);
  if (status != 0) throw std::runtime_error("llama_decode failed with " + std::to_string(status));
  impl_->fed += count;
  std::vector<float> logits;
  for (std::int32_t i = 0; i < count; ++i) {
    const float* row = llama_get_logits_ith(impl_->context.get(), i);
    logits.insert(logits.end(), row, row + vocabulary());
  }
  return logits;
}

std::vector<std::int32_t> LlamaReference::tokenize(const std::string& text) const {
  const llama_vocab* vocabulary = llama_model_get_vocab(impl_->model.get());
  std::vector<std::int32_t> tokens(text.size() + 2);
  const std::int32_t count = llama_tokenize(vocabulary, text.data(), static_cast<std::int32_t>(text.size()),
                                            tokens.data(), static_cast<std::int32_t>(tokens.size()), true, false);
  if (count < 0) throw std::runtime_error("llama_tokenize failed");
  tokens.resize(static_cast<std::size_t>(count));
  return tokens;
}

void LlamaReference::reset() {
  llama_memory_clear(llama_get_memory(impl_->context.get()), true);
  impl_->fed = 0;
}

}  // namespace razorkv::test
