#include "model/matrix_product.h"

#include <ggml-backend.h>
#include <ggml.h>

#include <algorithm>
#include <array>
#include <optional>

#include "matmul/matmul.h"

namespace razorkv {
namespace {

std::optional<BlockType> block_type(ggml_type type) {
  switch (type) {
    case GGML_TYPE_Q4_0:
      return BlockType::q4_0;
    case GGML_TYPE_Q4_1:
      return BlockType::q4_1;
    case GGML_TYPE_Q5_0:
      return BlockType::q5_0;
    case GGML_TYPE_Q5_1:
      return BlockType::q5_1;
    case GGML_TYPE_Q8_0:
      return BlockType::q8_0;
    case GGML_TYPE_Q4_K:
      return BlockType::q4_k;
    case GGML_TYPE_Q5_K:
      return BlockType::q5_k;
    case GGML_TYPE_Q6_K:
      return BlockType::q6_k;
    default:
      return std::nullopt;
  }
}

/// Part `part` of `parts` of [0, units), in elements of `unit` each, at most `count`.
struct Share {
  std::int64_t begin;
  std::int64_t end;
};
Share share(std::int64_t count, std::int64_t unit, int part, int parts) {
  const std::int64_t units = (count + unit - 1) / unit;
  return {std::min(count, units * part / parts * unit), std::min(count, units * (part + 1) / parts * unit)};
}

void round_rows(ggml_tensor* dst, int ith, int nth, void* /*userdata*/) {
  const ggml_tensor* x = dst->src[0];
  const Share rows = share(x->ne[1], 1, ith, nth);
  quantise_rows(static_cast<const float*>(x->data), x->ne[0], rows.begin, rows.end, static_cast<std::byte*>(dst->data));
}

void multiply_rows(ggml_tensor* dst, int ith, int nth, void* /*userdata*/) {
  const ggml_tensor* weight = dst->src[0];
  ProductView product;
  product.type = *block_type(weight->type);
  product.columns = weight->ne[0];
  product.weights = static_cast<const std::byte*>(weight->data);
  product.activations = static_cast<const std::byte*>(dst->src[1]->data);
  product.tokens = dst->ne[1];
  product.out = static_cast<float*>(dst->data);
  product.out_stride = dst->ne[0];
  const Share rows = share(weight->ne[1], kPanelRows, ith, nth);
  multiply(product, rows.begin, rows.end);
}

/// Not in the layout of one of ggml's own buffer types.
bool as_in_file(const ggml_tensor* weight) {
  return ggml_n_dims(weight) <= 2 && ggml_is_contiguous(weight) && weight->buffer != nullptr &&
         ggml_backend_buffer_is_host(weight->buffer);
}

}  // namespace

bool has_fast_product(int type) { return block_type(static_cast<ggml_type>(type)) && matmul_is_fast(); }

ggml_tensor* MatrixProducts::multiply(ggml_tensor* weight, ggml_tensor* x) {
  if (!fast_ || x->ne[1] < kFastProductTokens || !has_fast_product(weight->type) || !as_in_file(weight) ||
      !ggml_is_contiguous(x)) {
    return ggml_mul_mat(context_, weight, x);
  }
  if (rounded_from_ != x) {
    const auto bytes = static_cast<std::int64_t>(QuantisedRow(x->ne[0]).bytes);
    rounded_ =
        ggml_custom_4d(context_, GGML_TYPE_I8, bytes, x->ne[1], 1, 1, &x, 1, round_rows, GGML_N_TASKS_MAX, nullptr);
    rounded_from_ = x;
  }
  std::array<ggml_tensor*, 2> arguments{weight, rounded_};
  return ggml_custom_4d(context_, GGML_TYPE_F32, weight->ne[1], x->ne[1], 1, 1, arguments.data(),
                        static_cast<int>(arguments.size()), multiply_rows, GGML_N_TASKS_MAX, nullptr);
}

}  // namespace razorkv
