// Which product a graph gets, and that both agree.
#include "model/matrix_product.h"

#include <ggml-alloc.h>
#include <ggml-backend.h>
#include <ggml-cpu.h>
#include <ggml.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <random>
#include <vector>

#include "matmul/matmul.h"
#include "model/weights.h"

namespace razorkv::test {
namespace {

class MatrixProduct : public testing::Test {
 protected:
  static constexpr std::int64_t kColumns = 256;
  static constexpr std::int64_t kRows = 100;

  ggml_tensor* weight(ggml_type type) { return ggml_new_tensor_2d(context_.get(), type, kColumns, kRows); }

  /// Allocates what was made so far and fills weights and inputs.
  void fill(const std::vector<ggml_tensor*>& tensors) {
    buffer_.reset(ggml_backend_alloc_ctx_tensors_from_buft(context_.get(), ggml_backend_cpu_buffer_type()));
    std::mt19937 random(3);
    std::normal_distribution<float> normal;
    for (ggml_tensor* tensor : tensors) {
      std::vector<float> values(static_cast<std::size_t>(ggml_nelements(tensor)));
      for (float& value : values) value = normal(random);
      if (tensor->type == GGML_TYPE_F32) {
        ggml_backend_tensor_set(tensor, values.data(), 0, ggml_nbytes(tensor));
      } else {
        std::vector<std::byte> blocks(ggml_nbytes(tensor));
        ggml_quantize_chunk(tensor->type, values.data(), blocks.data(), 0, tensor->ne[1], tensor->ne[0], nullptr);
        ggml_backend_tensor_set(tensor, blocks.data(), 0, blocks.size());
      }
    }
  }

  std::vector<float> compute(ggml_context* context, ggml_tensor* result, int threads) {
    ggml_cgraph* graph = ggml_new_graph(context);
    ggml_build_forward_expand(graph, result);
    ggml_gallocr* allocator = ggml_gallocr_new(ggml_backend_cpu_buffer_type());
    EXPECT_TRUE(ggml_gallocr_alloc_graph(allocator, graph));
    ggml_backend* backend = ggml_backend_cpu_init();
    ggml_backend_cpu_set_n_threads(backend, threads);
    EXPECT_EQ(ggml_backend_graph_compute(backend, graph), GGML_STATUS_SUCCESS);
    std::vector<float> values(static_cast<std::size_t>(ggml_nelements(result)));
    ggml_backend_tensor_get(result, values.data(), 0, ggml_nbytes(result));
    ggml_backend_free(backend);
    ggml_gallocr_free(allocator);
    return values;
  }

  static GgmlContext description() {
    return GgmlContext(ggml_init({ggml_tensor_overhead() * 64 + ggml_graph_overhead(), nullptr, true}));
  }

  GgmlContext context_ = description();
  GgmlBuffer buffer_;
};

TEST_F(MatrixProduct, FewTokensUnknownTypesAndTheSwitchGoToGgml) {
  ggml_tensor* known = weight(GGML_TYPE_Q4_1);
  ggml_tensor* unknown = weight(GGML_TYPE_Q3_K);
  ggml_tensor* many = ggml_new_tensor_2d(context_.get(), GGML_TYPE_F32, kColumns, kFastProductTokens);
  ggml_tensor* few = ggml_new_tensor_2d(context_.get(), GGML_TYPE_F32, kColumns, kFastProductTokens - 1);
  ggml_tensor* loose = ggml_new_tensor_2d(context_.get(), GGML_TYPE_Q8_0, kColumns, kRows);
  fill({known, unknown, many, few});
  loose->buffer = nullptr;
  const GgmlContext graph = description();
  MatrixProducts products(graph.get(), true);
  EXPECT_EQ(products.multiply(known, few)->op, GGML_OP_MUL_MAT);
  EXPECT_EQ(products.multiply(unknown, many)->op, GGML_OP_MUL_MAT);
  EXPECT_EQ(products.multiply(loose, many)->op, GGML_OP_MUL_MAT);
  EXPECT_EQ(MatrixProducts(graph.get(), false).multiply(known, many)->op, GGML_OP_MUL_MAT);
  EXPECT_EQ(products.multiply(known, many)->op, matmul_is_fast() ? GGML_OP_CUSTOM : GGML_OP_MUL_MAT);
}

TEST_F(MatrixProduct, EqualsGgmlForAnyNumberOfThreads) {
  if (!matmul_is_fast()) GTEST_SKIP() << "this CPU has no AVX512-VNNI";
  ggml_tensor* first = weight(GGML_TYPE_Q6_K);
  ggml_tensor* second = weight(GGML_TYPE_Q5_0);
  ggml_tensor* x = ggml_new_tensor_2d(context_.get(), GGML_TYPE_F32, kColumns, 37);
  ggml_tensor* y = ggml_new_tensor_2d(context_.get(), GGML_TYPE_F32, kColumns, 37);
  fill({first, second, x, y});
  std::vector<std::vector<float>> results;
  for (const int threads : {0, 1, 2, 3, 7}) {  // 0: ggml's product
    const GgmlContext graph = description();
    MatrixProducts products(graph.get(), threads > 0);
    // Two weights share x; then another right side, whose rounding must not be taken for that of x.
    ggml_tensor* sum = ggml_add(graph.get(), products.multiply(first, x), products.multiply(second, x));
    sum = ggml_add(graph.get(), sum, products.multiply(first, y));
    results.push_back(compute(graph.get(), sum, threads > 0 ? threads : 1));
  }
  double error = 0;
  double size = 0;
  for (std::size_t i = 0; i < results[0].size(); ++i) {
    const auto wanted = static_cast<double>(results[0][i]);
    error += std::pow(static_cast<double>(results[1][i]) - wanted, 2);
    size += wanted * wanted;
  }
  // Both round activations to 8 bits: 0.006 of the result each for normal numbers.
  EXPECT_TRUE(std::sqrt(error / size) <= 0.015) << std::sqrt(error / size);
  for (std::size_t i = 2; i < results.size(); ++i) EXPECT_EQ(results[i], results[1]);
}

}  // namespace
}  // namespace razorkv::test
