// How weights are kept: in place, copied, repacked; and the fingerprint.
#include <ggml-backend.h>
#include <ggml.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <numeric>
#include <ostream>
#include <string>
#include <vector>

#include "base/file_mapping.h"
#include "model/gguf_file.h"
#include "model/loaded_model.h"
#include "support/decoder_runner.h"
#include "support/llama_reference.h"
#include "support/tiny_gguf.h"

namespace razorkv::test {
namespace {

class TemporaryModel {
 public:
  explicit TemporaryModel(const TinyGguf& gguf) : path_(gguf.write_temporary()) {}
  explicit TemporaryModel(const TinyOptions& options) : TemporaryModel(TinyGguf(options)) {}
  ~TemporaryModel() { std::remove(path_.c_str()); }
  TemporaryModel(const TemporaryModel&) = delete;
  TemporaryModel& operator=(const TemporaryModel&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::size_t tensor_bytes(const std::string& path) {
  const FileMapping mapping(path);
  const GgufFile gguf = GgufFile::parse(mapping.bytes(), path);
  return std::accumulate(gguf.tensors().begin(), gguf.tensors().end(), std::size_t{0},
                         [](std::size_t sum, const GgufTensor& tensor) { return sum + tensor.bytes; });
}

TEST(Weights, InPlaceAndCopiedGiveTheSameLogits) {
  const TinyOptions options = {.tied_output = true};
  const TemporaryModel file(options);
  const auto mapped = LoadedModel::load(file.path(), {.use_mmap = true});
  const auto copied = LoadedModel::load(file.path(), {.use_mmap = false});
  const std::vector<std::int32_t> tokens = random_tokens(20, options.vocabulary, 5);
  EXPECT_EQ(run_in_pieces(*mapped, tokens, 20), run_in_pieces(*copied, tokens, 20));
  EXPECT_EQ(mapped->weight_bytes().mapped, tensor_bytes(file.path()));
  EXPECT_EQ(mapped->weight_bytes().copied + mapped->weight_bytes().repacked, 0U);
  EXPECT_GE(copied->weight_bytes().copied, tensor_bytes(file.path()));
  EXPECT_LE(copied->weight_bytes().copied, tensor_bytes(file.path()) + 64 * 64);  // ggml pads every tensor
  EXPECT_EQ(copied->weight_bytes().mapped, 0U);
  EXPECT_EQ(copied->output(), copied->token_embedding());  // tied: no second copy
}

TEST(Weights, CopiedModelOutlivesItsFile) {
  TinyOptions options;
  const std::string path = TinyGguf(options).write_temporary();
  const auto model = LoadedModel::load(path, {.use_mmap = false});
  std::filesystem::resize_file(path, 0);  // a page that is still mapped would now raise SIGBUS
  EXPECT_EQ(run_in_pieces(*model, {1, 2, 3}, 3).size(), static_cast<std::size_t>(3 * options.vocabulary));
  std::remove(path.c_str());
}

struct TypeCase {
  ggml_type type;
  std::int64_t width;  ///< a multiple of the type's block
};

void PrintTo(const TypeCase& one, std::ostream* out) { *out << ggml_type_name(one.type); }

class WeightTypes : public testing::TestWithParam<TypeCase> {};

// With quantised weights both sides round activations to 8 bits (16 bits for f16 and bf16) at the same places, so most
// models agree to the last bit; where one rounding falls the other way a row moves by the size of that step. Measured:
// at most 1.2e-2 (q2_K), 8e-3 (q6_K), 1e-3 (bf16), 0 for most; with our own products, whose
// roundings are others everywhere, 1.6e-2 to 2.5e-2. A wrong layout or type gives errors around 1.
constexpr double kQuantisedTolerance = 5e-2;

TEST_P(WeightTypes, EqualLibllamaWithAndWithoutRepackingAndFastProducts) {
  const std::int64_t width = GetParam().width;
  const TinyOptions options = {.embedding = width,
                               .head_width = width / 4,
                               .feed_forward = width,
                               .tied_output = true,
                               .weight_type = GetParam().type};
  const TemporaryModel file(options);
  const std::vector<std::int32_t> tokens = random_tokens(40, options.vocabulary, 11);
  LlamaReference reference(file.path());
  const std::vector<float> expected = reference.feed(tokens);
  for (const LoadSettings& settings :
       {LoadSettings{}, LoadSettings{.fast_products = false}, LoadSettings{.repack = false, .fast_products = false}}) {
    const auto model = LoadedModel::load(file.path(), settings);
    for (const std::int64_t size : {1, 40}) {
      const double error = worst_row_error(run_in_pieces(*model, tokens, size), expected, options.vocabulary);
      EXPECT_LE(error, kQuantisedTolerance)
          << "repack " << settings.repack << " fast products " << settings.fast_products << " micro-batch " << size;
      RecordProperty((settings.fast_products ? "fast_"
                      : settings.repack      ? "repacked_"
                                             : "plain_") +
                         std::to_string(size),
                     std::to_string(error));
    }
    if (!settings.repack) {
      EXPECT_EQ(model->weight_bytes().repacked, 0U);
      EXPECT_EQ(model->output(), model->token_embedding());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, WeightTypes,
                         testing::Values(TypeCase{GGML_TYPE_F16, 64}, TypeCase{GGML_TYPE_BF16, 64},
                                         TypeCase{GGML_TYPE_Q8_0, 64}, TypeCase{GGML_TYPE_Q4_0, 64},
                                         TypeCase{GGML_TYPE_Q4_1, 64}, TypeCase{GGML_TYPE_Q5_0, 64},
                                         TypeCase{GGML_TYPE_Q5_1, 64}, TypeCase{GGML_TYPE_IQ4_NL, 64},
                                         TypeCase{GGML_TYPE_Q2_K, 256}, TypeCase{GGML_TYPE_Q3_K, 256},
                                         TypeCase{GGML_TYPE_Q4_K, 256}, TypeCase{GGML_TYPE_Q5_K, 256},
                                         TypeCase{GGML_TYPE_Q6_K, 256}, TypeCase{GGML_TYPE_IQ4_XS, 256}),
                         [](const auto& one) { return std::string(ggml_type_name(one.param.type)); });

TEST(Weights, RepackedTensorsAreTheOnesThatGgmlNames) {
  const TemporaryModel file({.embedding = 64, .feed_forward = 96, .tied_output = true, .weight_type = GGML_TYPE_Q4_0});
  const auto model = LoadedModel::load(file.path(), {.fast_products = false});
  const WeightBytes bytes = model->weight_bytes();
  if (bytes.repacked == 0) GTEST_SKIP() << "ggml repacks no q4_0 weights on this CPU";
  // Rows are looked up in the plain embedding; the output product uses a repacked copy of it.
  EXPECT_NE(model->output(), model->token_embedding());
  EXPECT_TRUE(ggml_backend_buffer_is_host(model->token_embedding()->buffer));
  EXPECT_FALSE(ggml_backend_buffer_is_host(model->layer(0).ffn_up->buffer));
  EXPECT_EQ(bytes.mapped + bytes.repacked, tensor_bytes(file.path()) + ggml_nbytes(model->token_embedding()));
}

TEST(Fingerprint, ChangesWithTheModelOnly) {
  const TinyOptions options;
  const TemporaryModel one(options);
  const TemporaryModel again(options);
  const std::string fingerprint = LoadedModel::load(one.path(), {})->fingerprint();
  EXPECT_EQ(fingerprint.size(), 64U);
  EXPECT_EQ(LoadedModel::load(again.path(), {.use_mmap = false})->fingerprint(), fingerprint);

  TinyGguf weight(options);
  weight.tensor("blk.1.ffn_up.weight").values[0] += 1.0F;
  EXPECT_NE(LoadedModel::load(TemporaryModel(weight).path(), {})->fingerprint(), fingerprint);
  TinyGguf last(options);
  last.tensor("blk.1.ffn_up.weight").values.back() += 1.0F;
  EXPECT_NE(LoadedModel::load(TemporaryModel(last).path(), {})->fingerprint(), fingerprint);
  TinyOptions longer = options;
  longer.context *= 2;
  EXPECT_NE(LoadedModel::load(TemporaryModel(longer).path(), {})->fingerprint(), fingerprint);
}

}  // namespace
}  // namespace razorkv::test
