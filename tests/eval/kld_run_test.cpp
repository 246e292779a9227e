// Perplexity and KLD on tiny random models, beside the same numbers from plain attention in double precision.
#include "eval/perplexity/kld_run.h"

#include <gtest/gtest.h>

#include <cmath>

#include "engine/model_handle.h"
#include "eval/perplexity/kld_base_file.h"
#include "eval/perplexity/kld_report.h"
#include "eval/perplexity/ppl_run.h"
#include "razorkv/error.h"
#include "support/decoder_runner.h"
#include "support/divergence.h"
#include "support/plain_attention_hook.h"
#include "support/temporary_folder.h"
#include "support/tiny_gguf.h"
#include "support/tiny_vocabulary.h"

namespace razorkv {
namespace {

using test::TemporaryFolder;

Model tiny_model() {
  test::TinyOptions options;
  options.vocabulary = test::kTinyVocabulary;
  options.context = 256;
  test::TinyGguf gguf(options);
  gguf.edit_metadata(test::set_tiny_vocabulary);
  return Model::load(gguf.write_temporary());
}

TextChunks random_chunks(std::int64_t context, std::int64_t count) {
  TextChunks chunks;
  chunks.context = context;
  chunks.tokens = test::random_tokens(context * count, test::kTinyVocabulary, 7);
  chunks.bos = 1;
  return chunks;
}

SessionOptions session() {
  SessionOptions options;
  options.threads = 1;
  options.kv_type = KvType::f32;
  options.micro_batch = 24;
  return options;
}

std::vector<PolicyColumn> columns(const std::string& words, std::int64_t window = 8) {
  PolicyOptions base;
  base.window = window;
  base.window_divisor = 0;
  base.sinks = 2;
  return parse_policy_columns(words, base);
}

/// Log-probabilities of the second half of a chunk, all positions fed at once.
std::vector<float> plain_logits(const Model& model, const TextChunks& chunks, std::int64_t chunk) {
  std::vector<std::int32_t> wanted;
  for (std::int64_t i = chunks.first(); i < chunks.context - 1; ++i) wanted.push_back(static_cast<std::int32_t>(i));
  test::PlainAttentionHook hook(model.impl()->loaded->config());
  return test::run_decoder(*model.impl()->loaded, hook, chunks.input(chunk), 0, wanted);
}

TEST(Perplexity, IsThatOfPlainAttention) {
  const Model model = tiny_model();
  const TextChunks chunks = random_chunks(61, 3);
  double sum = 0.0;
  double squares = 0.0;
  std::int64_t count = 0;
  for (std::int64_t chunk = 0; chunk < 3; ++chunk) {
    const std::vector<float> logits = plain_logits(model, chunks, chunk);
    for (std::int64_t i = 0; i < 61 - 1 - 30; ++i, ++count) {
      double total = 0.0;
      const float* row = logits.data() + i * test::kTinyVocabulary;
      for (std::int64_t v = 0; v < test::kTinyVocabulary; ++v) total += std::exp(static_cast<double>(row[v]));
      const Token target = chunks.tokens[static_cast<std::size_t>(chunk * 61 + 30 + i + 1)];
      const double nll = std::log(total) - static_cast<double>(row[target]);
      sum += nll;
      squares += nll * nll;
    }
  }
  PplOptions options;
  options.session = session();
  const PplResult found = run_perplexity(model, chunks, options);
  EXPECT_EQ(found.scored, 90);
  EXPECT_EQ(found.chunks, 3);
  const double mean = sum / 90.0;
  // Logits of f32 weights, both sides in float32: 3e-5 of a row's norm (compression_test.cpp).
  EXPECT_NEAR(found.nll.value, mean, 1e-4);
  EXPECT_NEAR(found.perplexity.value, std::exp(mean), 1e-4 * std::exp(mean));
  EXPECT_NEAR(found.nll.error, std::sqrt((squares / 90.0 - mean * mean) / 89.0), 1e-4);
}

TEST(Perplexity, RefusesChunksLongerThanTheContext) {
  EXPECT_THROW(run_perplexity(tiny_model(), random_chunks(257, 2), {session(), nullptr}), InvalidArgument);
}

TEST(TextChunks, PutBosInFrontAndDropTheRemainder) {
  const Model model = tiny_model();
  const Vocabulary& vocabulary = *model.impl()->vocabulary;
  const std::string text = "abcdefghijklmnopqrstuvwxyz";
  const std::vector<Token> whole = vocabulary.tokenize(text, true, false);
  const TextChunks chunks = cut_text(vocabulary, text, 8, 0);
  EXPECT_EQ(chunks.count(), static_cast<std::int64_t>(whole.size()) / 8);
  EXPECT_TRUE(std::equal(chunks.tokens.begin(), chunks.tokens.end(), whole.begin()));
  EXPECT_EQ(chunks.first(), 4);
  EXPECT_EQ(chunks.scored(), 3);
  std::vector<Token> second(whole.begin() + 8, whole.begin() + 15);
  second[0] = vocabulary.bos();
  EXPECT_EQ(chunks.input(1), second);
  EXPECT_EQ(std::vector<Token>(chunks.targets(1).begin(), chunks.targets(1).end()),
            std::vector<Token>(whole.begin() + 13, whole.begin() + 16));
  EXPECT_EQ(cut_text(vocabulary, text, 8, 1).count(), 1);
  EXPECT_THROW(cut_text(vocabulary, text, static_cast<std::int64_t>(whole.size()) / 2 + 1, 0), InvalidArgument);
  EXPECT_THROW(cut_text(vocabulary, text, 3, 0), InvalidArgument);
  EXPECT_THROW(cut_text(vocabulary, text, 8, -1), InvalidArgument);
}

TEST(Kld, OfFullFromFullIsNothing) {
  const Model model = tiny_model();
  KldOptions options;
  options.session = session();
  options.score_batch = 16;
  const KldResult found = run_kld(model, random_chunks(200, 2), columns("full,all,none"), options);
  EXPECT_EQ(found.scored, 2 * 99);
  for (const std::size_t exact : {0U, 1U}) {
    EXPECT_EQ(found.columns[exact].all.kld.value, 0.0);
    EXPECT_EQ(found.columns[exact].all.kld_percentiles[0], 0.0);
    EXPECT_EQ(found.columns[exact].all.same_top.value, 1.0);
    EXPECT_EQ(found.columns[exact].all.ratio.value, 1.0);
    EXPECT_EQ(found.columns[exact].kv_bytes, found.uncompressed_bytes);
  }
  EXPECT_GT(found.columns[2].all.kld.value, 1e-3);
  EXPECT_LT(found.columns[2].kv_bytes, found.uncompressed_bytes);
}

// The oracle keeps every row and sums sinks, mean and window as the definition says; no code of cache or policy.
TEST(Kld, OfACompressedCacheIsThatOfTheDefinition) {
  const Model model = tiny_model();
  const TextChunks chunks = random_chunks(120, 2);
  const std::int64_t v = test::kTinyVocabulary;
  double kld = 0.0;
  double same = 0.0;
  for (std::int64_t chunk = 0; chunk < 2; ++chunk) {
    const std::vector<float> exact = plain_logits(model, chunks, chunk);
    test::PlainAttentionHook hook(model.impl()->loaded->config());
    std::vector<std::vector<HeadRule>> rules;
    for (const LayerConfig& layer : model.impl()->loaded->config().layers) {
      rules.emplace_back(static_cast<std::size_t>(layer.kv_heads), HeadRule{false, 2, 8, 0, true});
    }
    hook.compress(rules, chunks.first());
    std::vector<std::int32_t> wanted;
    for (std::int64_t i = chunks.first(); i < chunks.context - 1; ++i) wanted.push_back(static_cast<std::int32_t>(i));
    const std::vector<float> compressed =
        test::run_decoder(*model.impl()->loaded, hook, chunks.input(chunk), 0, wanted);
    const test::Divergence expected = test::divergence(compressed, exact, v);
    kld += expected.mean_kld / 2.0;
    same += expected.same_top_share / 2.0;
  }
  for (const std::int64_t batch : {1, 7, 64}) {
    KldOptions options;
    options.session = session();
    options.score_batch = batch;
    const KldResult found = run_kld(model, chunks, columns("none"), options);
    EXPECT_NEAR(found.columns[0].all.kld.value, kld, 1e-3 * kld) << batch;
    EXPECT_NEAR(found.columns[0].all.same_top.value, same, 0.01) << batch;
    EXPECT_EQ(found.columns[0].by_distance[0].count, 2 * 59);
  }
}

TEST(Kld, AgainstABaseFile) {
  const TemporaryFolder folder;
  const Model model = tiny_model();
  TextChunks chunks = random_chunks(60, 3);
  KldOptions options;
  options.session = session();
  options.save_base = folder.file("base");
  const KldResult own = run_kld(model, chunks, columns("none"), options);
  options.save_base.clear();
  options.base_file = folder.file("base");
  const KldResult found = run_kld(model, chunks, columns("full,none"), options);
  EXPECT_EQ(found.uncompressed_end_bytes, 0U);
  EXPECT_LT(std::abs(found.columns[0].all.kld.value), 1e-6);  // (16 / 65535)^2 / 24 is 2.5e-9; the rest is float32
  EXPECT_NEAR(found.columns[1].all.kld.value, own.columns[0].all.kld.value, 1e-4);
  EXPECT_NEAR(found.columns[1].all.perplexity.value, own.columns[0].all.perplexity.value, 1e-9);
  chunks.tokens[5] = chunks.tokens[5] == 9 ? 8 : 9;
  EXPECT_THROW(run_kld(model, chunks, columns("full"), options), InvalidArgument);
}

TEST(Kld, StopsWithoutAFile) {
  const TemporaryFolder folder;
  KldOptions options;
  options.session = session();
  options.save_base = folder.file("base");
  int calls = 0;
  EXPECT_THROW(run_kld(tiny_model(), random_chunks(60, 3), columns("none"), options,
                       [&](std::int64_t done, std::int64_t total) {
                         EXPECT_LE(done, total);
                         return ++calls < 6;
                       }),
               Cancelled);
  EXPECT_TRUE(folder.names().empty());
}

TEST(Kld, ReportNamesEveryColumnAndRefusesFewTokens) {
  KldOptions options;
  options.session = session();
  const Model model = tiny_model();
  const TextRunFacts facts{"tiny", "abc", "text", 200, KvType::f32, ""};
  const KldResult enough = run_kld(model, random_chunks(220, 1), columns("full,none"), options);
  const std::string table = kld_markdown(facts, enough);
  EXPECT_NE(table.find("\n| full | 4 of 4 | "), std::string::npos) << table;
  EXPECT_NE(table.find("\n| none | 0 of 4 | "), std::string::npos);
  EXPECT_NE(table.find("\n| none | 64–511 | 45 |"), std::string::npos) << table;
  const nlohmann::json json = kld_json(facts, enough);
  EXPECT_EQ(json["columns"][1]["all"]["tokens"], 109);
  EXPECT_EQ(json["columns"][1]["protected_heads"].size(), 0U);
  const std::string few = kld_markdown(facts, run_kld(model, random_chunks(20, 1), columns("full"), options));
  EXPECT_NE(few.find("too few"), std::string::npos);
}

}  // namespace
}  // namespace razorkv
