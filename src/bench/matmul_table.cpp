#include "bench/matmul_table.h"

#include <fmt/format.h>
#include <ggml-alloc.h>
#include <ggml-backend.h>
#include <ggml-cpu.h>
#include <ggml.h>

#include <algorithm>
#include <ctime>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "bench/statistics.h"
#include "matmul/matmul.h"
#include "model/loaded_model.h"
#include "model/matrix_product.h"
#include "model/weights.h"
#include "razorkv/error.h"

namespace razorkv::bench {
namespace {

struct BackendFree {
  void operator()(ggml_backend* backend) const { ggml_backend_free(backend); }
};
struct AllocatorFree {
  void operator()(ggml_gallocr* allocator) const { ggml_gallocr_free(allocator); }
};

double cpu_seconds() {
  std::timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

std::vector<std::pair<const char*, ggml_tensor*>> weights_of(const LayerWeights& layer) {
  return {{"attn_q", layer.attn_q},           {"attn_k", layer.attn_k},     {"attn_v", layer.attn_v},
          {"attn_output", layer.attn_output}, {"ffn_gate", layer.ffn_gate}, {"ffn_up", layer.ffn_up},
          {"ffn_down", layer.ffn_down}};
}

struct Product {
  double seconds = 0.0;
  std::vector<float> values;
};

Product measure(ggml_backend* backend, ggml_tensor* weight, std::int64_t tokens, bool fast, int repetitions) {
  const GgmlContext context(ggml_init({ggml_tensor_overhead() * 16 + ggml_graph_overhead(), nullptr, true}));
  ggml_tensor* x = ggml_new_tensor_2d(context.get(), GGML_TYPE_F32, weight->ne[0], tokens);
  ggml_set_input(x);
  ggml_tensor* y = MatrixProducts(context.get(), fast).multiply(weight, x);
  ggml_cgraph* graph = ggml_new_graph(context.get());
  ggml_build_forward_expand(graph, y);
  const std::unique_ptr<ggml_gallocr, AllocatorFree> allocator(ggml_gallocr_new(ggml_backend_cpu_buffer_type()));
  if (!allocator || !ggml_gallocr_alloc_graph(allocator.get(), graph)) throw OutOfMemory("no memory for a product");
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> input(static_cast<std::size_t>(ggml_nelements(x)));
  for (float& value : input) value = normal(random);
  Product product;
  for (int r = 0; r <= repetitions; ++r) {
    ggml_backend_tensor_set(x, input.data(), 0, ggml_nbytes(x));
    const double start = cpu_seconds();
    ggml_backend_graph_compute(backend, graph);
    const double taken = cpu_seconds() - start;
    if (r <= 1 || taken < product.seconds) product.seconds = taken;  // the first warms up
  }
  product.values.resize(static_cast<std::size_t>(ggml_nelements(y)));
  ggml_backend_tensor_get(y, product.values.data(), 0, ggml_nbytes(y));
  return product;
}

}  // namespace

std::string matmul_table(const std::string& path, std::int64_t tokens, int repetitions) {
  if (tokens < 1 || repetitions < 1) throw InvalidArgument("expected at least 1 token (-p) and 1 repetition (-r)");
  const auto ours = LoadedModel::load(path, {});
  const auto theirs = LoadedModel::load(path, {.fast_products = false});
  const std::unique_ptr<ggml_backend, BackendFree> backend(ggml_backend_cpu_init());
  if (!backend) throw OutOfMemory("no memory for the compute threads");
  ggml_backend_cpu_set_n_threads(backend.get(), 1);
  std::string text = fmt::format(
      "{} tokens, one thread, CPU time, best of {}; products of this build on {}.\n\n"
      "| weight | type | k x m | ggml GFLOPS | ours GFLOPS | ratio | difference |\n|---|---|---|---:|---:|---:|---:|\n",
      tokens, repetitions, matmul_target());
  std::vector<std::pair<ggml_type, std::pair<std::int64_t, std::int64_t>>> seen;
  for (std::int64_t l = 0; l < ours->config().layer_count(); ++l) {
    const auto our_weights = weights_of(ours->layer(l));
    const auto their_weights = weights_of(theirs->layer(l));
    for (std::size_t i = 0; i < our_weights.size(); ++i) {
      ggml_tensor* weight = our_weights[i].second;
      const std::pair<ggml_type, std::pair<std::int64_t, std::int64_t>> kind{weight->type,
                                                                             {weight->ne[0], weight->ne[1]}};
      if (std::find(seen.begin(), seen.end(), kind) != seen.end()) continue;
      seen.push_back(kind);
      const Product expected = measure(backend.get(), their_weights[i].second, tokens, false, repetitions);
      const Product found = measure(backend.get(), weight, tokens, true, repetitions);
      const double operations = 2.0 * static_cast<double>(weight->ne[0] * weight->ne[1] * tokens);
      text += fmt::format("| {} | {} | {} x {} | {:.0f} | {:.0f} | {:.1f} | {:.4f} |\n", our_weights[i].first,
                          ggml_type_name(weight->type), weight->ne[0], weight->ne[1],
                          operations / expected.seconds / 1e9, operations / found.seconds / 1e9,
                          expected.seconds / found.seconds, distance(found.values, expected.values));
    }
  }
  return text;
}

}  // namespace razorkv::bench
