#include "engine/model_profile.h"

#include <gguf.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "engine/engine.h"
#include "engine/model_handle.h"
#include "engine/score_observer.h"
#include "heads/head_selection.h"
#include "razorkv/error.h"
#include "support/retrieval_model.h"
#include "support/tiny_gguf.h"

namespace razorkv {
namespace {

namespace fs = std::filesystem;

/// A file that goes with the test.
class ModelFile {
 public:
  explicit ModelFile(const test::TinyGguf& gguf) : path_(gguf.write_temporary()) {}
  ~ModelFile() { fs::remove(path_); }
  ModelFile(const ModelFile&) = delete;
  ModelFile& operator=(const ModelFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

ProfilingOptions distinct_block(std::int64_t block) {
  ProfilingOptions options;
  options.prompt.block = block;
  options.prompt.distinct = true;
  options.threads = 2;
  return options;
}

TEST(MakeProfile, FindsTheInductionHeadOfTheRetrievalModel) {
  const ModelFile file(test::retrieval_model());
  const HeadProfile profile = make_profile(Model::load(file.path()), distinct_block(500));
  const KvHeadScores kv = kv_head_scores(profile.model.shape, *profile.scores);
  EXPECT_GE(kv.induction[1][0], 0.99);
  for (const HeadId head : profile.model.shape.eligible()) {
    const auto layer = static_cast<std::size_t>(head.layer);
    const auto kv_head = static_cast<std::size_t>(head.kv_head);
    if (head != HeadId{1, 0}) {
      EXPECT_LE(kv.induction[layer][kv_head], 0.002) << layer << ":" << kv_head;
    }
    EXPECT_LE(kv.echo[layer][kv_head], 0.002) << layer << ":" << kv_head;
  }
  EXPECT_EQ(select_heads(parse_head_choice("0.14+0"), profile.model.shape, profile.scores),
            (std::vector<HeadId>{{1, 0}}));
  EXPECT_EQ(profile.scoring->block, 500);
  EXPECT_TRUE(profile.scoring->prefix);
  EXPECT_EQ(profile.scoring->id_high, 512);
}

TEST(MakeProfile, FindsTheEchoHeadOfTheEchoVariant) {
  test::RetrievalModelOptions variant;
  variant.echo = true;
  const ModelFile file(test::retrieval_model(variant));
  const HeadProfile profile = make_profile(Model::load(file.path()), distinct_block(500));
  const KvHeadScores kv = kv_head_scores(profile.model.shape, *profile.scores);
  // Of 2, 3 and 4 equal keys all but the row's own are earlier: (1/2 + 2/3 + 3/4) / 3 = 0.639.
  EXPECT_NEAR(kv.echo[1][1], 0.639, 0.005);
  EXPECT_GE(kv.induction[1][0], 0.99);
  EXPECT_LE(std::max({kv.echo[0][0], kv.echo[0][1], kv.echo[1][0]}), 0.002);
}

/// Keeps queries (and keys before RoPE) of a run; the oracle makes the whole attention matrix of them.
class Recorder : public AttentionObserver {
 public:
  Recorder(const Config& config, bool before_rope)
      : config_(config), before_rope_(before_rope), q_(config.layers.size()), k_(config.layers.size()) {}

  void observe(const ObservedAttention& seen, int ith, int /*nth*/) noexcept override {
    if (ith != 0) return;
    const LayerConfig& layer = config_.layers[static_cast<std::size_t>(seen.layer)];
    const auto append = [&](std::vector<float>& to, const float* from, std::int64_t heads) {
      to.insert(to.end(), from, from + seen.n * heads * config_.head_width);
    };
    append(q_[static_cast<std::size_t>(seen.layer)], before_rope_ ? seen.q_before_rope : seen.q, layer.heads);
    if (before_rope_) append(k_[static_cast<std::size_t>(seen.layer)], seen.k_before_rope, layer.kv_heads);
  }

  /// Keys after RoPE, once all rows are committed.
  void take_keys(const KvSequence& sequence) {
    if (before_rope_) return;
    std::vector<float> k(static_cast<std::size_t>(config_.head_width)), v(k);
    for (std::int64_t layer = 0; layer < sequence.layer_count(); ++layer) {
      for (std::int64_t position = 0; position < sequence.tokens(); ++position) {
        for (const HeadRows& head : sequence.layer(layer)) {
          head.read(position, k.data(), v.data());
          std::vector<float>& keys = k_[static_cast<std::size_t>(layer)];
          keys.insert(keys.end(), k.begin(), k.end());
        }
      }
    }
  }

  /// {induction, echo} of one head: the definition, in double precision.
  std::pair<double, double> scores(std::int64_t layer_index, std::int64_t head, const ScoringPrompt& prompt) const {
    const LayerConfig& layer = config_.layers[static_cast<std::size_t>(layer_index)];
    const std::int64_t width = config_.head_width;
    const std::int64_t kv_head = head / (layer.heads / layer.kv_heads);
    const auto n = static_cast<std::int64_t>(prompt.tokens.size());
    double induction = 0.0, echo = 0.0;
    for (std::int64_t i = prompt.prefix + prompt.block; i < n; ++i) {
      std::vector<double> a;
      double total = 0.0;
      for (std::int64_t j = 0; j <= i; ++j) {
        double dot = 0.0;
        for (std::int64_t e = 0; e < width; ++e) {
          dot += double{q_[static_cast<std::size_t>(layer_index)]
                          [static_cast<std::size_t>((i * layer.heads + head) * width + e)]} *
                 double{k_[static_cast<std::size_t>(layer_index)]
                          [static_cast<std::size_t>((j * layer.kv_heads + kv_head) * width + e)]};
        }
        a.push_back(std::exp(double{config_.attention_scale} * dot));
        total += a.back();
      }
      for (std::int64_t j = i - prompt.block; j >= prompt.prefix; j -= prompt.block) {
        echo += a[static_cast<std::size_t>(j)] / total;
        induction += a[static_cast<std::size_t>(j + 1)] / total;
      }
    }
    const auto rows = static_cast<double>((prompt.repeats - 1) * prompt.block);
    return {induction / rows, echo / rows};
  }

 private:
  const Config& config_;
  bool before_rope_;
  std::vector<std::vector<float>> q_, k_;
};

KvSequence run(Engine& engine, AttentionObserver& observer, const ScoringPrompt& prompt, std::size_t micro_batch) {
  engine.set_observer(&observer);
  KvSequence sequence = engine.new_sequence(engine.full_policy());
  const std::span<const Token> tokens(prompt.tokens);
  for (std::size_t begin = 0; begin < tokens.size(); begin += micro_batch) {
    const BatchItem item{&sequence, tokens.subspan(begin, std::min(micro_batch, tokens.size() - begin)), 0};
    engine.decode({&item, 1});
  }
  return sequence;
}

TEST(ScoreObserver, EqualsTheWholeAttentionMatrixBeforeAndAfterRope) {
  test::TinyOptions shape;
  shape.heads = 6;
  shape.kv_heads = 2;
  const ModelFile file(test::TinyGguf{shape});
  const auto loaded = LoadedModel::load(file.path(), {});
  ScoringPromptSettings settings;
  settings.block = 23;
  const ScoringPrompt prompt = make_scoring_prompt(settings, {shape.vocabulary, 1}, shape.context);
  for (const bool before_rope : {false, true}) {
    for (const std::size_t micro_batch : {std::size_t{24}, std::size_t{93}}) {
      EngineSettings engine_settings;
      engine_settings.threads = engine_settings.threads_batch = 2;
      engine_settings.row_type = RowType::f32;
      ScoreObserver observer(loaded->config(), prompt, before_rope);
      Recorder recorder(loaded->config(), before_rope);
      {
        Engine engine(loaded, engine_settings);
        run(engine, observer, prompt, micro_batch);
        recorder.take_keys(run(engine, recorder, prompt, micro_batch));
      }
      ASSERT_EQ(observer.error(), nullptr);
      const HeadScores scores = observer.mean();
      for (std::int64_t layer = 0; layer < shape.layers; ++layer) {
        for (std::int64_t head = 0; head < shape.heads; ++head) {
          const auto [induction, echo] = recorder.scores(layer, head, prompt);
          // The log-sum-exp is float32: relative error of exp about ulp(8) / 2 = 5e-7, and the kernel's own rounding.
          EXPECT_NEAR(scores.induction[static_cast<std::size_t>(layer)][static_cast<std::size_t>(head)], induction,
                      1e-5 * induction);
          EXPECT_NEAR(scores.echo[static_cast<std::size_t>(layer)][static_cast<std::size_t>(head)], echo, 1e-5 * echo);
        }
      }
    }
  }
}

TEST(MakeProfile, SlidingLayersScoreNothing) {
  test::TinyOptions shape;
  shape.architecture = "gemma3";
  shape.layers = 6;
  shape.sliding_window = 16;
  const ModelFile file(test::TinyGguf{shape});
  const auto loaded = LoadedModel::load(file.path(), {});
  ScoringPromptSettings settings;
  settings.block = 30;
  const ScoringPrompt prompt = make_scoring_prompt(settings, {shape.vocabulary, 1}, shape.context);
  for (const bool before_rope : {false, true}) {
    ScoreObserver observer(loaded->config(), prompt, before_rope);
    {
      Engine engine(loaded, {.row_type = RowType::f32});
      run(engine, observer, prompt, 50);
    }
    ASSERT_EQ(observer.error(), nullptr);
    const HeadScores scores = observer.mean();
    for (std::size_t layer = 0; layer < 6; ++layer) {
      EXPECT_EQ(scores.induction[layer][0] == 0.0, loaded->config().layers[layer].sliding) << layer;
    }
  }
}

TEST(MakeProfile, PrefixIsBosWherePromptsBeginWithIt) {
  ProfilingOptions options;
  options.prompt.block = 10;
  options.threads = 1;
  const auto prefixed = [&](const test::TinyGguf& gguf, ScoringPrefix prefix) {
    const ModelFile file(gguf);
    options.prefix = prefix;
    return make_profile(Model::load(file.path()), options).scoring->prefix;
  };
  test::TinyGguf adds = test::retrieval_model();
  test::TinyGguf adds_none = test::retrieval_model();
  adds_none.edit_metadata([](gguf_context* gguf) { gguf_set_val_bool(gguf, "tokenizer.ggml.add_bos_token", false); });
  EXPECT_TRUE(prefixed(adds, ScoringPrefix::as_prompts));
  EXPECT_FALSE(prefixed(adds_none, ScoringPrefix::as_prompts));
  EXPECT_TRUE(prefixed(adds_none, ScoringPrefix::bos));
  EXPECT_FALSE(prefixed(adds, ScoringPrefix::none));
}

TEST(MakeProfile, SeveralSeedsAreAveraged) {
  const ModelFile file(test::retrieval_model());
  const Model model = Model::load(file.path());
  ProfilingOptions options;
  options.prompt.block = 40;  // with replacement from 511: repeats lower the score by a little, differently per seed
  options.threads = 1;
  const auto score = [&](std::vector<std::uint64_t> seeds) {
    options.seeds = std::move(seeds);
    return make_profile(model, options).scores->induction[1][0];
  };
  const double first = score({1}), second = score({2}), both = score({1, 2});
  EXPECT_NE(first, second);
  EXPECT_NEAR(both, 0.5 * (first + second), 1e-12);
  EXPECT_THROW(score({}), InvalidArgument);
}

TEST(MakeProfile, ReportsProgressAndStops) {
  const ModelFile file(test::retrieval_model());
  const Model model = Model::load(file.path());
  ProfilingOptions options;
  options.prompt.block = 25;
  options.seeds = {1, 2};
  options.micro_batch = 40;
  std::vector<std::int64_t> done;
  make_profile(model, options, [&](std::int64_t now, std::int64_t total) {
    EXPECT_EQ(total, 202);
    done.push_back(now);
    return true;
  });
  EXPECT_EQ(done, (std::vector<std::int64_t>{40, 80, 101, 141, 181, 202}));
  EXPECT_THROW(make_profile(model, options, [](std::int64_t now, std::int64_t) { return now < 80; }), Cancelled);
}

TEST(FindOrMakeProfile, MakesOnceAndFindsAfterwards) {
  std::string cache = (fs::temp_directory_path() / "razorkv-cache-XXXXXX").string();
  ASSERT_NE(::mkdtemp(cache.data()), nullptr);
  ::setenv("XDG_CACHE_HOME", cache.c_str(), 1);
  test::RetrievalModelOptions small;
  small.context = 400;  // a short scoring prompt
  const ModelFile file(test::retrieval_model(small));
  const Model model = Model::load(file.path());
  PolicyOptions options;
  options.create_profile = false;
  EXPECT_THROW(find_or_make_profile(model, options), FileError);
  options.create_profile = true;
  int calls = 0;
  const Progress count = [&](std::int64_t, std::int64_t) { return ++calls > 0; };
  const HeadProfile made = find_or_make_profile(model, options, count);
  EXPECT_GT(calls, 0);
  EXPECT_EQ(made.scoring->block, 99);
  calls = 0;
  EXPECT_EQ(find_or_make_profile(model, options, count), made);
  EXPECT_EQ(calls, 0);
  options.profile = cache + "/missing.json";
  EXPECT_THROW(find_or_make_profile(model, options), FileError);
  ::unsetenv("XDG_CACHE_HOME");
  fs::remove_all(cache);
}

}  // namespace
}  // namespace razorkv
