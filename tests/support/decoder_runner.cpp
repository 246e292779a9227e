#include "support/decoder_runner.h"

#include <ggml-alloc.h>
#include <ggml-backend.h>
#include <ggml-cpu.h>
#include <ggml.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <random>
#include <stdexcept>

#include "support/plain_attention_hook.h"

namespace razorkv::test {
namespace {

struct Free {
  void operator()(ggml_context* context) const { ggml_free(context); }
  void operator()(ggml_backend_t backend) const { ggml_backend_free(backend); }
  void operator()(ggml_gallocr_t allocator) const { ggml_gallocr_free(allocator); }
};

void set_input(ggml_tensor* tensor, const std::vector<std::int32_t>& values) {
  if (tensor != nullptr && tensor->buffer != nullptr) {
    ggml_backend_tensor_set(tensor, values.data(), 0, values.size() * sizeof(std::int32_t));
  }
}

}  // namespace

std::vector<float> run_decoder(const LoadedModel& model, AttentionHook& hook, const std::vector<std::int32_t>& tokens,
                               std::int64_t first, const std::vector<std::int32_t>& wanted, int threads) {
  const auto n = static_cast<std::int64_t>(tokens.size());
  const std::int64_t outputs = wanted.empty() ? n : static_cast<std::int64_t>(wanted.size());
  const auto nodes = static_cast<std::size_t>(decoder_graph_nodes(model) + 4 * model.config().layer_count());
  const std::unique_ptr<ggml_context, Free> context(
      ggml_init({ggml_tensor_overhead() * nodes * 2 + ggml_graph_overhead_custom(nodes, false), nullptr, true}));
  ggml_cgraph* graph = ggml_new_graph_custom(context.get(), nodes, false);
  const DecoderGraph decoder = build_decoder(context.get(), graph, model, n, outputs, hook);
  const std::unique_ptr<ggml_backend, Free> backend(ggml_backend_cpu_init());
  ggml_backend_cpu_set_n_threads(backend.get(), threads);
  const std::unique_ptr<ggml_gallocr, Free> allocator(
      ggml_gallocr_new(ggml_backend_get_default_buffer_type(backend.get())));
  if (!ggml_gallocr_alloc_graph(allocator.get(), graph)) throw std::runtime_error("no memory for the graph");
  std::vector<std::int32_t> positions(tokens.size());
  std::iota(positions.begin(), positions.end(), static_cast<std::int32_t>(first));
  set_input(decoder.tokens, tokens);
  set_positions(decoder, model, positions);
  set_input(decoder.output_rows, wanted);
  if (ggml_backend_graph_compute(backend.get(), graph) != GGML_STATUS_SUCCESS) {
    throw std::runtime_error("the graph could not be computed");
  }
  std::vector<float> logits(static_cast<std::size_t>(outputs * model.config().vocabulary));
  ggml_backend_tensor_get(decoder.logits, logits.data(), 0, logits.size() * sizeof(float));
  return logits;
}

std::vector<float> run_in_pieces(const LoadedModel& model, const std::vector<std::int32_t>& tokens, std::int64_t size,
                                 int threads) {
  PlainAttentionHook hook(model.config());
  std::vector<float> all;
  const auto count = static_cast<std::int64_t>(tokens.size());
  for (std::int64_t first = 0; first < count; first += size) {
    const std::vector<std::int32_t> piece(tokens.begin() + first, tokens.begin() + std::min(count, first + size));
    const std::vector<float> logits = run_decoder(model, hook, piece, first, {}, threads);
    all.insert(all.end(), logits.begin(), logits.end());
  }
  return all;
}

std::vector<std::int32_t> random_tokens(std::int64_t count, std::int64_t vocabulary, std::uint32_t seed) {
  std::mt19937 generator(seed);
  std::uniform_int_distribution<std::int32_t> uniform(0, static_cast<std::int32_t>(vocabulary - 1));
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(count));
  for (std::int32_t& token : tokens) token = uniform(generator);
  return tokens;
}

double worst_row_error(const std::vector<float>& found, const std::vector<float>& expected, std::int64_t row) {
  constexpr double infinite = std::numeric_limits<double>::infinity();
  const auto width = static_cast<std::size_t>(row);
  if (found.size() != expected.size() || found.empty() || found.size() % width != 0) return infinite;
  double worst = 0.0;
  for (std::size_t start = 0; start < found.size(); start += width) {
    double difference = 0.0;
    double size = 0.0;
    for (std::size_t i = start; i < start + width; ++i) {
      const double delta = static_cast<double>(found[i]) - static_cast<double>(expected[i]);
      difference += delta * delta;
      size += static_cast<double>(expected[i]) * static_cast<double>(expected[i]);
    }
    const double error = std::sqrt(difference / size);
    if (!std::isfinite(error)) return infinite;
    worst = std::max(worst, error);
  }
  return worst;
}

}  // namespace razorkv::test
