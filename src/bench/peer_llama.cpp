#include "bench/peer_llama.h"

#include <ggml-cpu.h>
#include <llama.h>

#include <array>
#include <vector>

#include "model/library_log.h"
#include "razorkv/error.h"

namespace razorkv::bench {
namespace {

struct ModelFree {
  void operator()(llama_model* model) const { llama_model_free(model); }
};
struct ContextFree {
  void operator()(llama_context* context) const { llama_free(context); }
};
struct ThreadpoolFree {
  void operator()(ggml_threadpool* pool) const { ggml_threadpool_free(pool); }
};

}  // namespace

struct LlamaPeer::Impl {
  llama_context* context(bool flash) const { return contexts[flash ? 1 : 0].get(); }

  std::unique_ptr<llama_model, ModelFree> model;
  std::unique_ptr<ggml_threadpool, ThreadpoolFree> threadpool;
  std::array<std::unique_ptr<llama_context, ContextFree>, 2> contexts;  // flash attention off, on
  std::vector<Token> tokens;
};

LlamaPeer::LlamaPeer(const std::string& path, const LlamaPeerOptions& options) : impl_(std::make_unique<Impl>()) {
  silence_library_logs();
  impl_->model.reset(llama_model_load_from_file(path.c_str(), llama_model_default_params()));
  if (!impl_->model) throw Error("libllama cannot load " + path);
  // Without a pool of its own libllama starts its threads anew for every graph.
  ggml_threadpool_params pool = ggml_threadpool_params_default(options.threads);
  impl_->threadpool.reset(ggml_threadpool_new(&pool));
  llama_context_params params = llama_context_default_params();
  params.n_ctx = static_cast<std::uint32_t>(options.context);
  params.n_batch = params.n_ctx;
  params.n_ubatch = static_cast<std::uint32_t>(options.micro_batch);
  params.n_threads = options.threads;
  params.n_threads_batch = options.threads;
  for (const bool flash : {false, true}) {
    params.flash_attn_type = flash ? LLAMA_FLASH_ATTN_TYPE_ENABLED : LLAMA_FLASH_ATTN_TYPE_DISABLED;
    llama_context* context = llama_init_from_model(impl_->model.get(), params);
    if (context == nullptr) throw Error("libllama cannot make a context for " + path);
    impl_->contexts[flash ? 1 : 0].reset(context);
    llama_attach_threadpool(context, impl_->threadpool.get(), impl_->threadpool.get());
  }
}

LlamaPeer::~LlamaPeer() {
  for (const auto& context : impl_->contexts) {
    if (context) llama_detach_threadpool(context.get());
  }
}

void LlamaPeer::clear(bool flash) { llama_memory_clear(llama_get_memory(impl_->context(flash)), false); }

void LlamaPeer::truncate(bool flash, std::int64_t length) {
  if (!llama_memory_seq_rm(llama_get_memory(impl_->context(flash)), 0, static_cast<llama_pos>(length), -1)) {
    throw Error("libllama could not go back to " + std::to_string(length) + " tokens");
  }
}

std::span<const float> LlamaPeer::feed(bool flash, std::span<const Token> tokens) {
  impl_->tokens.assign(tokens.begin(), tokens.end());
  llama_context* context = impl_->context(flash);
  const auto count = static_cast<std::int32_t>(tokens.size());
  // Asks for the logits of the last token.
  if (llama_decode(context, llama_batch_get_one(impl_->tokens.data(), count)) != 0) {
    throw Error("libllama could not compute a batch of " + std::to_string(count) + " tokens");
  }
  const float* logits = llama_get_logits_ith(context, -1);
  const auto vocabulary = static_cast<std::size_t>(llama_vocab_n_tokens(llama_model_get_vocab(impl_->model.get())));
  return {logits, vocabulary};
}

}  // namespace razorkv::bench
