#include "support/real_model.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <stdexcept>
#include <vector>

#include "model/loaded_model.h"
#include "support/decoder_runner.h"
#include "support/float_copy.h"
#include "support/llama_reference.h"

namespace razorkv::test {
namespace {

constexpr int kThreads = 2;

}  // namespace

Comparison compare_with_libllama(const std::string& model, const std::string& text, std::int64_t count) {
  std::vector<float> expected;
  std::vector<std::int32_t> tokens;
  {
    LlamaReference reference(model, {.threads = kThreads});
    tokens = reference.tokenize(text);
    if (static_cast<std::int64_t>(tokens.size()) < count) throw std::runtime_error("the text is too short");
    tokens.resize(static_cast<std::size_t>(count));
    expected = reference.feed(tokens);
  }
  const auto ours = LoadedModel::load(model, {});
  const std::vector<float> found = run_in_pieces(*ours, tokens, 512, kThreads);
  const std::int64_t row = ours->config().vocabulary;
  return {divergence(found, expected, row), worst_row_error(found, expected, row)};
}

Comparison compare_float_copy_with_libllama(const std::string& model, const std::string& text, std::int64_t count) {
  const std::string copy = testing::TempDir() + "razorkv_float_" + std::to_string(getpid()) + ".gguf";
  try {
    write_float_copy(model, copy);
    const Comparison comparison = compare_with_libllama(copy, text, count);
    std::remove(copy.c_str());
    return comparison;
  } catch (...) {
    std::remove(copy.c_str());
    throw;
  }
}

}  // namespace razorkv::test
