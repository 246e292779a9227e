#include "engine/attention_ops.h"

#include <ggml.h>

#include <array>

namespace razorkv {
namespace {

const float* data(const ggml_tensor* tensor) { return static_cast<const float*>(tensor->data); }

const AttentionOps::LayerOp& op(void* userdata) { return *static_cast<AttentionOps::LayerOp*>(userdata); }

void store_layer(ggml_tensor* dst, int ith, int nth, void* userdata) {
  op(userdata).run->store(op(userdata).layer, data(dst->src[0]), data(dst->src[1]), data(dst->src[2]), ith, nth);
}

void attend_layer(ggml_tensor* dst, int ith, int nth, void* userdata) {
  op(userdata).run->attend(static_cast<float*>(dst->data), ith, nth);
}

void observe_layer(ggml_tensor* dst, int ith, int nth, void* userdata) {
  ObservedAttention tensors;
  tensors.layer = op(userdata).layer;
  tensors.output = data(dst);
  tensors.q = data(dst->src[1]);
  tensors.q_before_rope = data(dst->src[2]);
  tensors.k_before_rope = data(dst->src[3]);
  tensors.residual = data(dst->src[4]);
  op(userdata).run->observe(tensors, ith, nth);
}

}  // namespace

ggml_tensor* AttentionOps::attend(ggml_context* context, ggml_cgraph* /*graph*/, std::int64_t layer,
                                  const LayerTensors& tensors) {
  LayerOp* const layer_op = &layers_.emplace_back(LayerOp{&run_, layer});
  std::array<ggml_tensor*, 3> store_args{tensors.k, tensors.v, tensors.q};
  ggml_tensor* stored = ggml_custom_4d(context, GGML_TYPE_F32, 1, 1, 1, 1, store_args.data(),
                                       static_cast<int>(store_args.size()), store_layer, GGML_N_TASKS_MAX, layer_op);
  std::array<ggml_tensor*, 2> attend_args{tensors.q, stored};
  ggml_tensor* output = ggml_custom_4d(context, GGML_TYPE_F32, tensors.q->ne[0] * tensors.q->ne[1], tensors.q->ne[2], 1,
                                       1, attend_args.data(), static_cast<int>(attend_args.size()), attend_layer,
                                       GGML_N_TASKS_MAX, layer_op);
  if (!observed_) return output;
  std::array<ggml_tensor*, 4> observe_args{tensors.q, ggml_cont(context, tensors.q_before_rope),
                                           ggml_cont(context, tensors.k_before_rope), tensors.residual};
  return ggml_custom_inplace(context, output, observe_args.data(), static_cast<int>(observe_args.size()), observe_layer,
                             GGML_N_TASKS_MAX, layer_op);
}

}  // namespace razorkv
