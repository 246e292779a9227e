// Weight matrix times activations in a graph: our 8-bit product where it is faster, ggml's elsewhere.
#pragma once

#include <cstdint>

struct ggml_context;
struct ggml_tensor;

namespace razorkv {

/// Smallest number of tokens for which unpacking the weights pays.
inline constexpr std::int64_t kFastProductTokens = 16;

/// Adds products to one graph. Activations that several weights share are rounded to 8 bits once.
class MatrixProducts {
 public:
  /// `fast` = false leaves everything to ggml.
  MatrixProducts(ggml_context* context, bool fast) : context_(context), fast_(fast) {}

  /// weight [k, m] of any type, x [k, n] float32 -> [m, n] float32. Both are ggml's order, fastest dimension first.
  ggml_tensor* multiply(ggml_tensor* weight, ggml_tensor* x);

 private:
  ggml_context* context_;
  bool fast_;
  ggml_tensor* rounded_from_ = nullptr;  ///< the last x that was rounded
  ggml_tensor* rounded_ = nullptr;
};

/// Whether our product reads weights of this ggml_type and is fast on this CPU. Such weights should not be repacked.
bool has_fast_product(int type);

}  // namespace razorkv
