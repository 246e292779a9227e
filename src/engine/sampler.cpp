#include "engine/sampler.h"

#include <llama.h>

#include <cmath>
#include <limits>
#include <random>
#include <string>

#include "engine/grammar_check.h"
#include "razorkv/error.h"

namespace razorkv {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();

[[noreturn]] void refuse(const std::string& name, const std::string& expected, const std::string& found) {
  throw InvalidArgument(name + " must be " + expected + ", found " + found);
}

void check_range(const char* name, float value, float low, float high) {
  if (!(value >= low && value <= high)) {
    refuse(name, "from " + std::to_string(low) + " to " + std::to_string(high), std::to_string(value));
  }
}

void check_params(const SamplingParams& params, std::int64_t vocabulary) {
  check_range("temperature", params.temperature, 0.0F, 1000.0F);
  if (params.top_k < 0) refuse("top-k", "0 (all tokens) or more", std::to_string(params.top_k));
  check_range("top-p", params.top_p, 0.0F, 1.0F);
  check_range("min-p", params.min_p, 0.0F, 1.0F);
  check_range("repeat penalty", params.repeat_penalty, 0.01F, 100.0F);
  check_range("frequency penalty", params.frequency_penalty, -100.0F, 100.0F);
  check_range("presence penalty", params.presence_penalty, -100.0F, 100.0F);
  if (params.penalty_last_n < -1 || params.penalty_last_n > SamplingParams::kMaxPenaltyTokens) {
    refuse("the number of tokens that penalties look back on",
           "from -1 to " + std::to_string(SamplingParams::kMaxPenaltyTokens), std::to_string(params.penalty_last_n));
  }
  for (const LogitBias& bias : params.logit_bias) {
    if (bias.token < 0 || bias.token >= vocabulary) {
      refuse("the token of a logit bias", "from 0 to " + std::to_string(vocabulary - 1), std::to_string(bias.token));
    }
    if (std::isnan(bias.bias) || bias.bias == std::numeric_limits<float>::infinity()) {
      refuse("a logit bias", "a number or minus infinity", std::to_string(bias.bias));
    }
  }
}

llama_sampler* new_chain() { return llama_sampler_chain_init({.no_perf = true}); }

}  // namespace

void Sampler::Free::operator()(llama_sampler* sampler) const { llama_sampler_free(sampler); }

Sampler::~Sampler() = default;
Sampler::Sampler(Sampler&&) noexcept = default;
Sampler& Sampler::operator=(Sampler&&) noexcept = default;

Sampler::Sampler(std::shared_ptr<const Vocabulary> vocabulary, const SamplingParams& params)
    : vocabulary_(std::move(vocabulary)), params_(params) {
  check_params(params_, vocabulary_->size());
  if (!params_.seed) params_.seed = static_cast<std::uint32_t>(std::random_device{}());
  const auto size = static_cast<std::int32_t>(vocabulary_->size());

  if (!params_.grammar.empty()) {
    check_grammar(params_.grammar, params_.grammar_root, *vocabulary_);
    try {
      grammar_.reset(
          llama_sampler_init_grammar(vocabulary_->handle(), params_.grammar.c_str(), params_.grammar_root.c_str()));
    } catch (const std::exception&) {
      grammar_.reset();
    }
    if (!grammar_) {
      refuse("the grammar", "GBNF rules with a start symbol '" + params_.grammar_root + "' and no left recursion",
             "text that cannot be read as such");
    }
  }

  const std::int32_t last_n = params_.penalty_last_n < 0 ? SamplingParams::kMaxPenaltyTokens : params_.penalty_last_n;
  const bool penalties = last_n > 0 && (params_.repeat_penalty != 1.0F || params_.frequency_penalty != 0.0F ||
                                        params_.presence_penalty != 0.0F);
  if (penalties || !params_.logit_bias.empty()) {
    adjust_.reset(new_chain());
    if (!params_.logit_bias.empty()) {
      std::vector<llama_logit_bias> biases;
      for (const LogitBias& bias : params_.logit_bias) biases.push_back({bias.token, bias.bias});
      llama_sampler_chain_add(
          adjust_.get(), llama_sampler_init_logit_bias(size, static_cast<std::int32_t>(biases.size()), biases.data()));
    }
    if (penalties) {
      llama_sampler_chain_add(
          adjust_.get(), llama_sampler_init_penalties(size, last_n, params_.repeat_penalty, params_.frequency_penalty,
                                                      params_.presence_penalty));
    }
  }

  if (params_.temperature > 0.0F) {
    choose_.reset(new_chain());
    if (params_.top_k > 0) llama_sampler_chain_add(choose_.get(), llama_sampler_init_top_k(params_.top_k));
    if (params_.top_p < 1.0F) llama_sampler_chain_add(choose_.get(), llama_sampler_init_top_p(params_.top_p, 1));
    if (params_.min_p > 0.0F) llama_sampler_chain_add(choose_.get(), llama_sampler_init_min_p(params_.min_p, 1));
    llama_sampler_chain_add(choose_.get(), llama_sampler_init_temp(params_.temperature));
    llama_sampler_chain_add(choose_.get(), llama_sampler_init_dist(*params_.seed));
  }
}

Token Sampler::sample(std::span<const float> logits) {
  if (static_cast<std::int64_t>(logits.size()) != vocabulary_->size()) {
    refuse("the number of logits", std::to_string(vocabulary_->size()), std::to_string(logits.size()));
  }
  std::vector<llama_token_data> tokens;
  tokens.reserve(logits.size());
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const float logit = logits[i];
    if (std::isnan(logit) || logit == std::numeric_limits<float>::infinity()) {
      throw Error("the model gave the logit " + std::to_string(logit) + " for token " + std::to_string(i) +
                  "; expected a finite number; the weights may be damaged, or a number overflowed");
    }
    if (logit != kNever) tokens.push_back({static_cast<Token>(i), logit, 0.0F});
  }
  if (tokens.empty()) throw Error("the model gave minus infinity for all tokens; expected at least one finite logit");

  llama_token_data_array candidates{tokens.data(), tokens.size(), -1, false};
  const auto drop_forbidden = [&](const char* by) {
    std::erase_if(tokens, [](const llama_token_data& token) { return token.logit == kNever; });
    if (tokens.empty()) throw Error(std::string(by) + " no token at this place; generation cannot go on");
    candidates = {tokens.data(), tokens.size(), -1, false};
  };
  if (grammar_) {
    llama_sampler_apply(grammar_.get(), &candidates);
    drop_forbidden("the grammar allows");
  }
  if (adjust_) {
    llama_sampler_apply(adjust_.get(), &candidates);
    drop_forbidden("the logit bias allows");
  }
  Token chosen = -1;
  if (choose_) {
    llama_sampler_apply(choose_.get(), &candidates);
    if (candidates.selected < 0 || candidates.selected >= static_cast<std::int64_t>(candidates.size)) {
      throw Error("libllama's sampler chose no token");
    }
    chosen = candidates.data[candidates.selected].id;
  } else {
    const llama_token_data* best = tokens.data();
    for (const llama_token_data& token : tokens) {
      if (token.logit > best->logit || (token.logit == best->logit && token.id < best->id)) best = &token;
    }
    chosen = best->id;
  }
  accept(chosen);
  return chosen;
}

void Sampler::check(Token token) const {
  if (token < 0 || token >= vocabulary_->size()) {
    refuse("a token", "from 0 to " + std::to_string(vocabulary_->size() - 1), std::to_string(token));
  }
}

bool Sampler::grammar_allows(Token token) const {
  llama_token_data data{token, 0.0F, 0.0F};
  llama_token_data_array candidates{&data, 1, -1, false};
  llama_sampler_apply(grammar_.get(), &candidates);
  return data.logit != kNever;
}

void Sampler::accept_prompt(Token token) {
  check(token);
  if (adjust_) llama_sampler_accept(adjust_.get(), token);
}

void Sampler::accept(Token token) {
  check(token);
  if (grammar_) {
    // libllama ends the process when a token is accepted that the grammar forbids.
    if (!grammar_allows(token)) {
      throw InvalidArgument("the grammar does not allow token " + std::to_string(token) + " at this place");
    }
    try {
      llama_sampler_accept(grammar_.get(), token);
    } catch (const std::exception& error) {
      throw InvalidArgument(std::string("the grammar does not go on from here: ") + error.what());
    }
  }
  if (adjust_) llama_sampler_accept(adjust_.get(), token);
  if (choose_) llama_sampler_accept(choose_.get(), token);
}

Sampler Sampler::clone() const {
  Sampler copy;
  copy.vocabulary_ = vocabulary_;
  copy.params_ = params_;
  if (grammar_) copy.grammar_.reset(llama_sampler_clone(grammar_.get()));
  if (adjust_) copy.adjust_.reset(llama_sampler_clone(adjust_.get()));
  if (choose_) copy.choose_.reset(llama_sampler_clone(choose_.get()));
  return copy;
}

void Sampler::reset() {
  if (grammar_) llama_sampler_reset(grammar_.get());
  if (adjust_) llama_sampler_reset(adjust_.get());
  if (choose_) llama_sampler_reset(choose_.get());
}

std::uint32_t Sampler::seed() const { return *params_.seed; }

}  // namespace razorkv
