#include <utility>

#include "engine/model_handle.h"
#include "engine/sampler.h"
#include "razorkv/sampling.h"

namespace razorkv {

struct TokenSampler::Impl {
  Sampler sampler;
};

TokenSampler::TokenSampler(const Model& model, const SamplingParams& params)
    : impl_(std::make_unique<Impl>(Impl{Sampler(model.impl()->vocabulary, params)})) {}
TokenSampler::~TokenSampler() = default;
TokenSampler::TokenSampler(TokenSampler&&) noexcept = default;
TokenSampler& TokenSampler::operator=(TokenSampler&&) noexcept = default;

Token TokenSampler::sample(std::span<const float> logits) { return impl_->sampler.sample(logits); }

void TokenSampler::accept_prompt(std::span<const Token> tokens) {
  for (const Token token : tokens) impl_->sampler.accept_prompt(token);
}

}  // namespace razorkv
