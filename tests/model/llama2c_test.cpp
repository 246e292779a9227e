// Small trained models against published token ids.
#include "support/llama2c.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "model/loaded_model.h"
#include "support/decoder_runner.h"
#include "support/llama_reference.h"
#include "support/plain_attention_hook.h"
#include "support/temporary_folder.h"
#include "support/test_files.h"

namespace razorkv::test {
namespace {

std::shared_ptr<const LoadedModel> load(const TinyGguf& gguf) {
  const std::string path = gguf.write_temporary();
  auto model = LoadedModel::load(path, {});
  std::remove(path.c_str());  // the mapping keeps the contents
  return model;
}

/// Token ids after `start`, the start included.
std::vector<std::int32_t> greedy(const LoadedModel& model, std::int32_t start, std::int64_t count) {
  PlainAttentionHook hook(model.config());
  std::vector<std::int32_t> tokens = {start};
  while (static_cast<std::int64_t>(tokens.size()) < count) {
    const auto position = static_cast<std::int64_t>(tokens.size()) - 1;
    const std::vector<float> logits = run_decoder(model, hook, {tokens.back()}, position);
    tokens.push_back(static_cast<std::int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin()));
  }
  return tokens;
}

TEST(Stories260K, GreedyTokensEqualTheGoldenOnes) {
  const auto path = data_file("models/stories260K.bin");
  if (!path) GTEST_SKIP() << missing_data("models/stories260K.bin");
  const std::vector<std::int32_t> golden = {
      1,   403, 407, 261, 378, 432, 383, 286, 261, 376, 298, 315, 421, 395, 317, 426, 338, 401, 396, 267, 337, 410,
      408, 419, 292, 411, 322, 265, 282, 295, 433, 426, 385, 328, 432, 358, 394, 261, 370, 432, 352, 266, 268, 388,
      426, 338, 391, 266, 267, 337, 335, 312, 432, 398, 312, 286, 267, 414, 270, 333, 415, 426, 13,  438};
  EXPECT_EQ(greedy(*load(read_llama2c(*path)), 1, 64), golden);
}

TEST(Stories260K, FirstLogitsEqualDoublePrecision) {
  const auto path = data_file("models/stories260K.bin");
  if (!path) GTEST_SKIP() << missing_data("models/stories260K.bin");
  const auto model = load(read_llama2c(*path));
  PlainAttentionHook hook(model->config());
  const std::vector<float> logits = run_decoder(*model, hook, {1}, 0);
  // Given with six digits behind the point; float32 through five layers adds some 1e-6.
  EXPECT_NEAR(logits[0], -6.222914, 2e-5);
  EXPECT_NEAR(logits[1], 8.404342, 2e-5);
  EXPECT_NEAR(logits[2], -6.223739, 2e-5);
  EXPECT_NEAR(logits[3], -6.222544, 2e-5);
  EXPECT_NEAR(logits[403], 17.023515, 2e-5);
  EXPECT_EQ(std::max_element(logits.begin(), logits.end()) - logits.begin(), 403);
}

TEST(BabyLlama, GreedyTokensEqualLibllama) {
  const auto path = data_file("models/babyllama_tok105_model5000.bin");
  if (!path) GTEST_SKIP() << missing_data("models/babyllama_tok105_model5000.bin");
  const std::string gguf = read_llama2c(*path).write_temporary();
  const std::vector<std::int32_t> ours = greedy(*LoadedModel::load(gguf, {}), 1, 200);
  LlamaReference reference(gguf, {.context = 256});
  const std::vector<float> logits = reference.feed(ours);
  for (std::size_t i = 0; i + 1 < ours.size(); ++i) {
    const auto row = logits.begin() + static_cast<std::ptrdiff_t>(i) * reference.vocabulary();
    EXPECT_EQ(ours[i + 1], std::max_element(row, row + reference.vocabulary()) - row) << "token " << i + 1;
  }
  std::remove(gguf.c_str());
}

TEST(Llama2c, RefusesAFileOfAnotherSize) {
  const auto source = data_file("models/stories260K.bin");
  if (!source) GTEST_SKIP() << missing_data("models/stories260K.bin");
  const TemporaryFolder folder;
  const std::string path = folder.file("cut.bin");
  std::filesystem::copy_file(*source, path, std::filesystem::copy_options::overwrite_existing);
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 4);
  EXPECT_THROW(read_llama2c(path), std::runtime_error);
}

}  // namespace
}  // namespace razorkv::test
