#include "bench/bench_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <random>
#include <thread>

#include "base/stopwatch.h"
#include "bench/peer_llama.h"
#include "bench/statistics.h"
#include "engine/engine_settings.h"
#include "engine/model_handle.h"
#include "engine/policy_handle.h"
#include "engine/prefill.h"
#include "razorkv/error.h"

namespace razorkv::bench {
namespace {

using Tokens = std::span<const Token>;

void at_least(const char* name, std::int64_t value, std::int64_t least) {
  if (value >= least) return;
  throw InvalidArgument(fmt::format("{}: expected {} or more, found {}", name, least, value));
}

std::vector<BenchTest> tests_of(const BenchSettings& settings) {
  std::vector<std::int64_t> depths = settings.depths;
  std::sort(depths.begin(), depths.end());
  depths.erase(std::unique(depths.begin(), depths.end()), depths.end());
  std::vector<BenchTest> tests;
  for (const std::int64_t depth : depths) {
    at_least("-d", depth, 0);
    for (const std::int64_t tokens : settings.prompts) {
      at_least("-p", tokens, 0);
      if (tokens > 0) tests.push_back({true, tokens, depth});
    }
    for (const std::int64_t tokens : settings.answers) {
      at_least("-n", tokens, 0);
      if (tokens > 0) tests.push_back({false, tokens, depth});
    }
  }
  if (tests.empty()) throw InvalidArgument("nothing to measure: give -p or -n at least one number above 0, and -d");
  at_least("-r", settings.repetitions, 1);
  return tests;
}

std::int64_t longest(const std::vector<BenchTest>& tests) {
  std::int64_t length = 0;
  for (const BenchTest& test : tests) length = std::max(length, test.depth + test.tokens);
  return length;
}

class Runner {
 public:
  Runner(const Model& model, const Policy& policy, const BenchSettings& settings, const Progress& progress)
      : settings_(settings),
        progress_(progress),
        tests_(tests_of(settings)),
        engine_(model.impl()->loaded, engine_settings(settings.session)),
        rules_(policy.impl()->rules),
        grown_(engine_.new_sequence(rules_->streaming ? rules_ : engine_.full_policy())) {
    const std::int64_t length = longest(tests_);
    if (length > model.info().context) {
      throw InvalidArgument(
          fmt::format("depth and test take {} tokens, the model was trained for {}", length, model.info().context));
    }
    std::mt19937_64 random(1);
    const auto vocabulary = static_cast<std::uint64_t>(model.impl()->loaded->config().vocabulary);
    for (std::int64_t i = 0; i < length; ++i) tokens_.push_back(static_cast<Token>(random() % vocabulary));
    if (settings.llama.empty()) return;
    llama_ = std::make_unique<LlamaPeer>(
        settings.llama, LlamaPeerOptions{engine_.settings().threads, length, settings.session.micro_batch});
  }

  BenchResult run() {
    BenchResult result;
    warm_up(result);
    for (std::size_t t = 0; t < tests_.size(); ++t) {
      if (progress_ && !progress_(static_cast<std::int64_t>(t), static_cast<std::int64_t>(tests_.size()))) {
        throw Cancelled("stopped; no result was written");
      }
      grow(tests_[t].depth);
      result.rows.push_back(measure(tests_[t]));
    }
    return result;
  }

 private:
  double seconds(const std::function<void()>& work) const {
    // Threads of the other side spin for a while after their last graph.
    if (llama_) std::this_thread::sleep_for(std::chrono::milliseconds(100));
    const Stopwatch watch;
    work();
    return watch.seconds();
  }

  Tokens range(std::int64_t begin, std::int64_t count) const {
    return Tokens(tokens_).subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(count));
  }

  std::span<const float> feed(KvSequence& sequence, Tokens tokens) {
    return prefill(engine_, sequence, tokens, settings_.session.micro_batch);
  }

  KvSequence compressed() const {
    if (rules_->streaming) return grown_;
    KvSequence sequence = grown_.with_policy(rules_);
    if (grown_.tokens() > 0) sequence.compress();
    return sequence;
  }

  void warm_up(BenchResult& result) {
    const auto begin = std::min<std::int64_t>(std::ssize(tokens_), settings_.session.micro_batch);
    KvSequence sequence = engine_.new_sequence(engine_.full_policy());
    const std::span<const float> logits = feed(sequence, range(0, begin));
    const std::vector<float> ours(logits.begin(), logits.end());
    feed(sequence, range(0, 1));
    if (!llama_) return;
    const std::span<const float> plain = llama_->feed(false, range(0, begin));
    const std::vector<float> expected(plain.begin(), plain.end());
    result.logit_distance = {distance(ours, expected), distance(llama_->feed(true, range(0, begin)), expected)};
    for (const bool flash : {false, true}) llama_->clear(flash);
  }

  void grow(std::int64_t depth) {
    const std::int64_t missing = depth - grown_.tokens();
    if (missing == 0) return;
    const Tokens more = range(grown_.tokens(), missing);
    feed(grown_, more);
    if (!llama_) return;
    for (const bool flash : {false, true}) llama_->feed(flash, more);
  }

  BenchRow measure(const BenchTest& test) {
    BenchRow row;
    row.test = test;
    const Tokens tokens = range(test.depth, test.tokens);
    const auto rate = [&](const std::function<void(Tokens)>& next) {
      return static_cast<double>(test.tokens) / seconds([&] {
               if (test.prefill) return next(tokens);
               for (const Token& token : tokens) next({&token, 1});
             });
    };
    const KvSequence base = compressed();
    for (int r = 0; r < settings_.repetitions; ++r) {
      KvSequence sequence = base;
      row.speed.push_back(rate([&](Tokens some) { feed(sequence, some); }));
      row.kv_bytes = sequence.usage().allocated_bytes;
      if (!test.prefill) {
        const std::size_t rows = base.usage().row_bytes + sequence.usage().row_bytes;
        row.kv_read = 0.5 * static_cast<double>(rows);
      }
      if (!llama_) continue;
      for (const bool flash : {false, true}) {
        row.llama[flash ? 1 : 0].push_back(rate([&](Tokens some) { llama_->feed(flash, some); }));
        llama_->truncate(flash, test.depth);
      }
    }
    return row;
  }

  const BenchSettings& settings_;
  const Progress& progress_;
  std::vector<BenchTest> tests_;
  Engine engine_;
  std::shared_ptr<const KvPolicy> rules_;
  KvSequence grown_;  ///< full, or under a streaming policy, up to the depth of the test
  std::vector<Token> tokens_;
  std::unique_ptr<LlamaPeer> llama_;
};

}  // namespace

std::string BenchTest::name() const {
  const std::string test = fmt::format("{}{}", prefill ? "pp" : "tg", tokens);
  return depth == 0 ? test : fmt::format("{} @ d{}", test, depth);
}

BenchResult run_bench(const Model& model, const Policy& policy, const BenchSettings& settings,
                      const Progress& progress) {
  return Runner(model, policy, settings, progress).run();
}

}  // namespace razorkv::bench
