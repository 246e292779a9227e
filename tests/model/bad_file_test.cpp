// Files that cannot be loaded: an error that says what was expected, never a crash.
#include <gguf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <functional>
#include <iterator>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "model/gguf_file.h"
#include "model/loaded_model.h"
#include "model/read_config.h"
#include "model/unsupported.h"
#include "model/weight_table.h"
#include "razorkv/error.h"
#include "support/temporary_folder.h"
#include "support/tiny_gguf.h"

namespace razorkv::test {
namespace {

using testing::HasSubstr;

const TinyOptions kSmall = {.embedding = 32, .layers = 1, .head_width = 8, .vocabulary = 16, .feed_forward = 32};

std::string load_error(const std::string& path, bool use_mmap = true) {
  try {
    LoadedModel::load(path, {.use_mmap = use_mmap});
  } catch (const UnsupportedModel& error) {
    return std::string("unsupported: ") + error.what();
  } catch (const FileError& error) {
    return std::string("file: ") + error.what();
  }
  return "no error";
}

std::string error_of(const TinyGguf& gguf) {
  const std::string path = gguf.write_temporary();
  std::string error = load_error(path);
  std::remove(path.c_str());
  return error;
}

/// Error after a change of the metadata.
std::string error_after(const std::function<void(gguf_context*)>& edit, const TinyOptions& options = kSmall) {
  TinyGguf gguf(options);
  gguf.edit_metadata(edit);
  return error_of(gguf);
}

std::string error_with(const char* key, std::uint32_t value) {
  return error_after([=](gguf_context* gguf) { gguf_set_val_u32(gguf, key, value); });
}

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

void write_file(const std::string& path, const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; }

TEST(BadFile, TheSmallModelItselfLoads) { EXPECT_EQ(error_of(TinyGguf(kSmall)), "no error"); }

TEST(BadFile, MissingDirectoryEmptyAndOtherFiles) {
  const TemporaryFolder folder;
  EXPECT_THAT(load_error(folder.file("no_such_model.gguf")), HasSubstr("file: cannot open"));
  EXPECT_THAT(load_error(folder.path()), HasSubstr("is a directory"));
  const std::string path = folder.file("bad_model_test.gguf");
  write_file(path, "");
  EXPECT_THAT(load_error(path), HasSubstr("is empty (0 bytes)"));
  write_file(path, "This is a text about models.");
  EXPECT_THAT(load_error(path), HasSubstr("not a GGUF file"));
  EXPECT_THAT(load_error("/dev/null"), HasSubstr("not a regular file"));
}

TEST(BadFile, CutAtTwoHundredPlaces) {
  const std::string path = TinyGguf(kSmall).write_temporary();
  const std::string whole = read_file(path);
  std::vector<std::size_t> cuts = {
      1, 3, 4, 7, 8, 15, 16, 23, 24, whole.size() / 10, whole.size() / 2, whole.size() * 99 / 100, whole.size() - 1};
  for (std::size_t i = 1; i < 200; ++i) cuts.push_back(whole.size() * i / 200);
  for (const std::size_t cut : cuts) {
    write_file(path, whole.substr(0, cut));
    EXPECT_THAT(load_error(path, true), HasSubstr("file: ")) << "cut at " << cut << " of " << whole.size();
    EXPECT_THAT(load_error(path, false), HasSubstr("file: ")) << "cut at " << cut << " of " << whole.size();
  }
  // The last cut is in the data, so the message names the tensor.
  write_file(path, whole.substr(0, whole.size() - 1));
  EXPECT_THAT(load_error(path), HasSubstr("tensor 'token_embd.weight'"));
  std::remove(path.c_str());
}

/// All checks that come before the weights are touched.
void check_header(const std::string& bytes) {
  const GgufFile gguf = GgufFile::parse(std::as_bytes(std::span(bytes)), "flipped");
  if (!unsupported_features(gguf).empty()) throw UnsupportedModel("unsupported");
  const Config config = read_config(gguf);
  ModelWeights weights;
  for (const WeightSpec& spec : weight_table(config, require_architecture(gguf), weights)) find_weight(gguf, spec);
}

TEST(BadFile, FlippedHeaderBytesNeverCrash) {
  const std::string path = TinyGguf(kSmall).write_temporary();
  const std::string whole = read_file(path);
  const GgufFile gguf = GgufFile::parse(std::as_bytes(std::span(whole)), "whole");
  std::size_t header = whole.size();
  for (const GgufTensor& tensor : gguf.tensors()) header = std::min(header, tensor.offset);
  std::size_t refused = 0;
  for (std::size_t i = 0; i < header; ++i) {
    for (const int mask : {0x01, 0x80, 0xff}) {
      std::string bytes = whole;
      bytes[i] = static_cast<char>(bytes[i] ^ mask);
      bool good = true;
      try {
        check_header(bytes);
      } catch (const Error&) {
        good = false;
      }
      refused += good ? 0U : 1U;
      // The whole way through the file for some, among them the harmless ones.
      if (i % 32 == 0 || (good && i % 8 == 0)) {
        write_file(path, bytes);
        EXPECT_EQ(load_error(path) == "no error", good) << "byte " << i << " mask " << mask;
      }
    }
  }
  EXPECT_GT(refused, header);  // of 3 flips per byte
  std::remove(path.c_str());
}

TEST(BadFile, EveryRequiredTensorMissing) {
  for (const char* architecture : {"llama", "qwen3", "gemma3"}) {
    TinyOptions options = kSmall;
    options.architecture = architecture;
    options.tied_output = true;
    const std::string path = TinyGguf(options).write_temporary();
    const std::string bytes = read_file(path);
    std::remove(path.c_str());
    const GgufFile gguf = GgufFile::parse(std::as_bytes(std::span(bytes)), "tiny");
    for (const GgufTensor& tensor : gguf.tensors()) {
      TinyGguf without(options);
      without.remove(tensor.name);
      EXPECT_THAT(error_of(without), HasSubstr("tensor '" + tensor.name + "'"));
    }
  }
}

TEST(BadFile, WrongShapesSayExpectedAndFound) {
  TinyGguf gguf(kSmall);
  gguf.set("blk.0.attn_k.weight", {{32, 24}, std::vector<float>(32 * 24, 0.1F)});
  EXPECT_THAT(error_of(gguf), HasSubstr("tensor 'blk.0.attn_k.weight' should have shape [32, 16], found [32, 24]"));
  TinyGguf transposed(kSmall);
  transposed.tensor("token_embd.weight").shape = {16, 32};
  EXPECT_THAT(error_of(transposed), HasSubstr("should equal the 32 rows of token_embd.weight, found 16"));
  TinyGguf biased(kSmall);
  biased.set("blk.0.attn_q.bias", {{8}, std::vector<float>(8, 0.1F)});
  EXPECT_THAT(error_of(biased), HasSubstr("'blk.0.attn_q.bias' should have shape [32], found [8]"));
}

TEST(BadFile, ParametersOutOfRange) {
  EXPECT_THAT(error_with("llama.attention.head_count", 0), HasSubstr("'llama.attention.head_count' should be 1 to"));
  EXPECT_THAT(error_with("llama.attention.head_count_kv", 0), HasSubstr("head_count_kv' should be 1 to"));
  EXPECT_THAT(error_with("llama.attention.head_count_kv", 3), HasSubstr("should divide the 4 query heads"));
  EXPECT_THAT(error_with("llama.attention.head_count_kv", 8), HasSubstr("should divide the 4 query heads"));
  EXPECT_THAT(error_with("llama.block_count", 0), HasSubstr("'llama.block_count' should be 1 to 1024, found 0"));
  EXPECT_THAT(error_with("llama.block_count", 1U << 31U), HasSubstr("found 2147483648"));
  EXPECT_THAT(error_with("llama.block_count", 2), HasSubstr("tensor 'blk.1."));
  EXPECT_THAT(error_with("llama.embedding_length", 0), HasSubstr("embedding_length' should be 1 to"));
  EXPECT_THAT(error_with("llama.embedding_length", 0xffffffffU), HasSubstr("embedding_length' should be 1 to"));
  EXPECT_THAT(error_with("llama.feed_forward_length", 0), HasSubstr("feed_forward_length' should be 1 to"));
  EXPECT_THAT(error_with("llama.context_length", 0), HasSubstr("context_length' should be 1 to"));
  EXPECT_THAT(error_with("llama.vocab_size", 17), HasSubstr("should equal the 16 rows of token_embd.weight, found 17"));
  EXPECT_THAT(error_with("llama.rope.dimension_count", 7), HasSubstr("should be even, found 7"));
  EXPECT_THAT(error_with("llama.rope.dimension_count", 0), HasSubstr("dimension_count' should be 1 to 8"));
  EXPECT_THAT(error_with("llama.rope.dimension_count", 10), HasSubstr("dimension_count' should be 1 to 8"));
  EXPECT_THAT(error_with("llama.rope.dimension_count", 4), HasSubstr("should equal the head width 8"));
  EXPECT_THAT(error_with("llama.attention.key_length", 0), HasSubstr("key_length' should be 1 to"));
  EXPECT_THAT(error_with("llama.attention.key_length", 16), HasSubstr("heads of K have 16 elements"));
}

TEST(BadFile, NumbersThatAreNotFinite) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(), -1.0F}) {
    for (const char* key : {"llama.attention.layer_norm_rms_epsilon", "llama.rope.freq_base",
                            "llama.rope.scaling.factor", "llama.rope.scaling.attn_factor"}) {
      EXPECT_THAT(error_after([=](gguf_context* gguf) { gguf_set_val_f32(gguf, key, bad); }), HasSubstr(key)) << bad;
    }
  }
}

TEST(BadFile, EveryUsedKeyOfAnotherType) {
  const char* keys[] = {"general.architecture",
                        "llama.context_length",
                        "llama.embedding_length",
                        "llama.block_count",
                        "llama.feed_forward_length",
                        "llama.attention.head_count",
                        "llama.attention.head_count_kv",
                        "llama.attention.key_length",
                        "llama.attention.layer_norm_rms_epsilon",
                        "llama.rope.dimension_count",
                        "llama.rope.freq_base",
                        "llama.rope.scaling.type",
                        "llama.rope.scaling.factor",
                        "llama.vocab_size",
                        "general.alignment"};
  for (const char* key : keys) {
    // gguf_write asserts on an alignment of another type, so that key gets its own test in gguf_file_test.cpp.
    if (std::string(key) == "general.alignment") continue;
    EXPECT_THAT(error_after([=](gguf_context* gguf) { gguf_set_val_bool(gguf, key, true); }), HasSubstr(key));
    EXPECT_THAT(error_after([=](gguf_context* gguf) {
                  const float numbers[] = {1.0F, 2.0F};
                  gguf_set_arr_data(gguf, key, GGUF_TYPE_FLOAT32, numbers, 2);
                }),
                HasSubstr(key));
  }
}

TEST(BadFile, ArraysOfAnotherLength) {
  EXPECT_THAT(error_after([](gguf_context* gguf) {
                const std::uint32_t counts[] = {4, 4};
                gguf_set_arr_data(gguf, "llama.attention.head_count", GGUF_TYPE_UINT32, counts, 2);
              }),
              HasSubstr("one number for each of the 1 layers, found 2"));
  EXPECT_THAT(error_after([](gguf_context* gguf) {
                const char* tokens[] = {"a", "b"};
                gguf_set_arr_str(gguf, "tokenizer.ggml.tokens", tokens, 2);
              }),
              HasSubstr("array of 16 strings"));
}

TEST(Unsupported, ArchitectureIsNamedWithTheKnownOnes) {
  const std::string error =
      error_after([](gguf_context* gguf) { gguf_set_val_str(gguf, "general.architecture", "mamba"); });
  EXPECT_THAT(error, HasSubstr("unsupported: "));
  EXPECT_THAT(error, HasSubstr("architecture 'mamba' is not supported; supported are llama, qwen2, qwen3"));
}

TEST(Unsupported, AllReasonsAreListedAtOnce) {
  TinyGguf gguf(kSmall);
  gguf.set("blk.0.ffn_gate_exps.weight", {{32, 32}, std::vector<float>(1024, 0.1F)});
  gguf.tensor("output_norm.weight").type = GGML_TYPE_F16;
  gguf.edit_metadata([](gguf_context* keys) {
    gguf_set_val_u32(keys, "llama.expert_count", 8);
    gguf_set_val_u16(keys, "split.count", 3);
  });
  const std::string error = error_of(gguf);
  EXPECT_THAT(error, HasSubstr("unsupported: "));
  EXPECT_THAT(error, HasSubstr("mixture of experts (8 experts)"));
  EXPECT_THAT(error, HasSubstr("split over 3 files"));
  EXPECT_THAT(error, HasSubstr("unknown tensor blk.N.ffn_gate_exps.weight (1 in the file)"));
  EXPECT_THAT(error, HasSubstr("type f16 of tensor output_norm.weight (f32 expected)"));
}

TEST(Unsupported, RopeScaling) {
  TinyOptions options = kSmall;
  options.rope_scaling = "longrope";
  EXPECT_THAT(error_of(TinyGguf(options)), HasSubstr("RoPE scaling 'longrope' is not supported"));
}

TEST(Unsupported, TypesThatAreNoWeights) {
  TinyGguf gguf(kSmall);
  const std::string path = gguf.write_temporary();
  std::string bytes = read_file(path);
  // The type of blk.0.attn_k.weight: behind its name, the dimension count and two dimensions.
  const std::string name = "blk.0.attn_k.weight";
  const std::size_t type = bytes.find(name) + name.size() + 4 + 16;
  bytes[type] = static_cast<char>(GGML_TYPE_I32);
  write_file(path, bytes);
  EXPECT_THAT(load_error(path), HasSubstr("type i32 of tensor blk.N.attn_k.weight"));
  std::remove(path.c_str());
}

}  // namespace
}  // namespace razorkv::test
