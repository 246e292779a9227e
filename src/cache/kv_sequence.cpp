#include "cache/kv_sequence.h"

#include <algorithm>
#include <string>
#include <utility>

#include "razorkv/error.h"

namespace razorkv {

KvSequence::KvSequence(const RowFormat& format, std::shared_ptr<const KvPolicy> policy,
                       std::span<const std::int64_t> sliding_window)
    : format_(format), policy_(std::move(policy)), sliding_window_(sliding_window.begin(), sliding_window.end()) {
  if (policy_->rules.size() != sliding_window.size()) {
    throw InvalidArgument("the KV policy has rules for " + std::to_string(policy_->rules.size()) +
                          " layers, the model has " + std::to_string(sliding_window.size()));
  }
  layers_.reserve(sliding_window.size());
  for (std::size_t l = 0; l < sliding_window.size(); ++l) {
    std::vector<HeadRows>& heads = layers_.emplace_back();
    heads.reserve(policy_->rules[l].size());
    for (const HeadRule& rule : policy_->rules[l]) {
      const bool sliding = sliding_window[l] > 0;
      heads.emplace_back(format_, sliding ? HeadRule::sliding(sliding_window[l]) : rule);
      if (sliding || policy_->streaming) heads.back().compress();
    }
  }
  compressed_ = policy_->streaming;
}

void KvSequence::reserve(PagePool& pool, std::int64_t extra) {
  try {
    for (auto& heads : layers_) {
      for (HeadRows& head : heads) head.reserve(pool, extra);
    }
  } catch (...) {
    release_reserved();
    throw;
  }
}

void KvSequence::release_reserved() noexcept {
  for (auto& heads : layers_) {
    for (HeadRows& head : heads) head.release_reserved();
  }
}

void KvSequence::commit(std::int64_t rows) noexcept {
  for (auto& heads : layers_) {
    for (HeadRows& head : heads) head.commit(rows);
  }
  tokens_ += rows;
}

void KvSequence::compress() {
  if (compressed_) return;
  if (policy_->selects_rows()) {
    throw InvalidArgument("policy " + policy_->name +
                          " chooses rows by the attention within the prompt, which was not recorded here");
  }
  auto layers = layers_;  // page references only: if memory runs out half-way the sequence is as it was
  for (auto& heads : layers) {
    for (HeadRows& head : heads) head.compress();
  }
  layers_.swap(layers);
  compressed_ = true;
}

void KvSequence::compress(const RowChoice& choice) {
  if (compressed_) return;
  if (choice.size() != layers_.size()) throw InvalidArgument("the choice of rows is not for the model's layers");
  auto layers = layers_;
  for (std::size_t l = 0; l < layers.size(); ++l) {
    if (choice[l].size() != layers[l].size())
      throw InvalidArgument("the choice of rows is not for the model's KV heads");
    for (std::size_t h = 0; h < layers[l].size(); ++h) {
      if (layers[l][h].rule().everything) layers[l][h].keep(choice[l][h]);
      layers[l][h].compress();
    }
  }
  layers_.swap(layers);
  compressed_ = true;
}

KvSequence KvSequence::with_policy(std::shared_ptr<const KvPolicy> policy) const {
  if (compressed_) throw InvalidArgument("a compressed sequence cannot follow another policy");
  if (policy->streaming && tokens_ > 0) {
    throw InvalidArgument("streaming prefill must start with an empty sequence; this one holds " +
                          std::to_string(tokens_) + " tokens");
  }
  KvSequence empty(format_, policy, sliding_window_);
  for (std::size_t l = 0; l < layers_.size(); ++l) {
    if (policy->rules[l].size() != layers_[l].size()) {
      throw InvalidArgument("the KV policy has " + std::to_string(policy->rules[l].size()) + " KV heads in layer " +
                            std::to_string(l) + ", the sequence has " + std::to_string(layers_[l].size()));
    }
  }
  if (tokens_ == 0) return empty;
  KvSequence copy = *this;
  for (std::size_t l = 0; l < layers_.size(); ++l) {
    if (sliding_window_[l] > 0) continue;
    for (std::size_t h = 0; h < layers_[l].size(); ++h) copy.layers_[l][h].set_rule(policy->rules[l][h]);
  }
  copy.policy_ = std::move(policy);
  return copy;
}

KvUsage KvSequence::usage() const noexcept {
  KvUsage usage;
  usage.tokens = tokens_;
  for (std::size_t l = 0; l < layers_.size(); ++l) {
    for (const HeadRows& head : layers_[l]) {
      const HeadUsage h = head.usage();
      usage.rows += h.rows;
      usage.row_bytes += h.row_bytes;
      usage.allocated_bytes += h.allocated_bytes;
      const std::int64_t rows = sliding_window_[l] > 0 ? std::min(tokens_, sliding_window_[l]) : tokens_;
      usage.uncompressed_bytes += 2 * static_cast<std::size_t>(rows) * row_bytes(format_.type, format_.width);
    }
  }
  return usage;
}

}  // namespace razorkv
