// The synthetic retrieval model in the engine: one document, many questions, each on a copy of the compressed document.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/engine.h"
#include "engine/prefill.h"
#include "heads/head_plan.h"
#include "support/retrieval_model.h"

namespace razorkv::test {

/// The KV head that must see everything, and the other three.
inline const std::vector<HeadId> kInductionHead{{1, 0}};
inline const std::vector<HeadId> kOtherHeads{{0, 0}, {0, 1}, {1, 1}};

inline HeadRule local_rule(std::int64_t window, bool compensate = true) { return {false, 4, window, 0, compensate}; }

struct Reply {
  std::vector<Token> tokens;  ///< four, greedy
  std::vector<float> logits;  ///< [4, vocabulary], in which they were found
};

/// Greatest difference of any logit; infinite where anything is not a number.
inline double farthest(const std::vector<Reply>& found, const std::vector<Reply>& expected) {
  double worst = 0.0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    for (std::size_t j = 0; j < expected[i].logits.size(); ++j) {
      const double difference = std::abs(double{found.at(i).logits.at(j)} - double{expected[i].logits[j]});
      if (!std::isfinite(difference)) return std::numeric_limits<double>::infinity();
      worst = std::max(worst, difference);
    }
  }
  return worst;
}

class RetrievalCase {
 public:
  RetrievalCase(RetrievalTask questions, RowType rows, const RetrievalModelOptions& options = {})
      : task(std::move(questions)), model_(load(options)), engine_(model_, {1, 1, rows, 0}) {}

  std::shared_ptr<const KvPolicy> policy(const std::vector<HeadId>& whole, const HeadRule& local,
                                         bool streaming = false) const {
    HeadPlan plan = make_plan(HeadShape::of(model_->config()), whole, local, "test");
    return std::make_shared<const KvPolicy>(KvPolicy{"test", streaming, std::move(plan.rules)});
  }

  /// The document, compressed by `rules`. The prompt is read once for all policies that do not stream.
  KvSequence read(const std::shared_ptr<const KvPolicy>& rules) {
    if (rules->streaming) {
      KvSequence document = engine_.new_sequence(rules);
      prefill(engine_, document, task.context, 512);
      return document;
    }
    KvSequence document = uncompressed().with_policy(rules);
    document.compress();
    return document;
  }
  const KvSequence& uncompressed() {
    if (!uncompressed_) {
      uncompressed_ = engine_.new_sequence(engine_.full_policy());
      prefill(engine_, *uncompressed_, task.context, 512);
    }
    return *uncompressed_;
  }

  /// Feeds the key to a copy of the document, then the answer's own tokens.
  Reply ask(const KvSequence& document, Token key) {
    KvSequence branch = document;
    Reply reply;
    for (Token next = key; reply.tokens.size() < 4; next = reply.tokens.back()) {
      const BatchItem item{&branch, {&next, 1}, 1};
      const std::span<const float> logits = engine_.decode({&item, 1});
      reply.tokens.push_back(static_cast<Token>(std::max_element(logits.begin(), logits.end()) - logits.begin()));
      reply.logits.insert(reply.logits.end(), logits.begin(), logits.end());
    }
    return reply;
  }
  /// All needles, or every `step`-th.
  std::vector<Reply> ask_all(const KvSequence& document, std::size_t step = 1) {
    std::vector<Reply> replies;
    for (std::size_t i = 0; i < task.needles.size(); i += step) {
      replies.push_back(ask(document, task.needles[i].key()));
    }
    return replies;
  }
  /// Answers of which all four tokens are right.
  std::int64_t right(const std::vector<Reply>& replies, std::size_t step = 1) const {
    std::int64_t count = 0;
    for (std::size_t i = 0; i < replies.size(); ++i) count += replies[i].tokens == task.needles[i * step].answer();
    return count;
  }

  const RetrievalTask task;

 private:
  static std::shared_ptr<const LoadedModel> load(const RetrievalModelOptions& options) {
    const std::string path = retrieval_model(options).write_temporary();
    auto model = LoadedModel::load(path, {});
    std::filesystem::remove(path);  // its mapping stays
    return model;
  }

  std::shared_ptr<const LoadedModel> model_;
  Engine engine_;
  std::optional<KvSequence> uncompressed_;
};

}  // namespace razorkv::test
