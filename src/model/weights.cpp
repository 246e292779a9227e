#include "model/weights.h"

#include <fmt/format.h>
#include <ggml-cpu.h>

#include <algorithm>
#include <cstdint>

#include "model/matrix_product.h"
#include "razorkv/error.h"

namespace razorkv {
namespace {

/// Address alignment that ggml wants of a tensor that is used in place.
constexpr std::uintptr_t kTensorAlignment = 32;
/// Columns of the made-up right side when ggml is asked whether it multiplies by a repacked weight.
constexpr std::int64_t kProbeColumns = 512;

GgmlContext new_context(std::size_t tensors) {
  GgmlContext context(ggml_init({ggml_tensor_overhead() * tensors, nullptr, true}));
  if (!context) throw OutOfMemory("no memory for the descriptions of the model's tensors");
  return context;
}

ggml_tensor* new_tensor(ggml_context* context, const GgufTensor& tensor) {
  return ggml_new_tensor(context, static_cast<ggml_type>(tensor.type), static_cast<int>(tensor.dimensions),
                         tensor.shape.data());
}

std::vector<ggml_backend_buffer_type_t> repacking_buffer_types() {
  std::vector<ggml_backend_buffer_type_t> types;
  ggml_backend_dev_t device = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
  if (device == nullptr) return types;
  void* address =
      ggml_backend_reg_get_proc_address(ggml_backend_dev_backend_reg(device), "ggml_backend_dev_get_extra_bufts");
  if (address == nullptr) return types;
  const auto list = reinterpret_cast<ggml_backend_dev_get_extra_bufts_t>(address);
  for (ggml_backend_buffer_type_t* type = list(device); type != nullptr && *type != nullptr; ++type)
    types.push_back(*type);
  return types;
}

/// Whether ggml multiplies by this weight when it lies in a buffer of this type.
bool repacks(const GgufTensor& tensor, ggml_backend_buffer_type_t type) {
  const GgmlContext context = new_context(4);
  ggml_tensor* weight = new_tensor(context.get(), tensor);
  ggml_tensor* right = ggml_new_tensor_2d(context.get(), GGML_TYPE_F32, tensor.shape[0], kProbeColumns);
  ggml_tensor* product = ggml_mul_mat(context.get(), weight, right);
  const GgmlBuffer empty(ggml_backend_buft_alloc_buffer(type, 0));
  weight->buffer = empty.get();
  return empty && ggml_backend_dev_supports_op(ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU), product);
}

}  // namespace

WeightStore::WeightStore(const FileMapping& mapping, const GgufFile& gguf, const std::vector<WeightSpec>& table,
                         const LoadSettings& settings)
    : fast_products_(settings.fast_products), capacity_(table.size()) {
  if (settings.repack) repacking_ = repacking_buffer_types();
  for (const WeightSpec& spec : table) {
    const GgufTensor* tensor = find_weight(gguf, spec);
    if (tensor != nullptr) *spec.slot = add(*tensor, place_of(gguf, *tensor, spec.use, settings.use_mmap));
  }
  for (Group& group : groups_) {
    if (group.type == nullptr) {
      use_in_place(mapping, gguf, group);
    } else {
      copy(mapping, gguf, group);
    }
  }
}

ggml_backend_buffer_type_t WeightStore::place_of(const GgufFile& gguf, const GgufTensor& tensor, WeightUse use,
                                                 bool use_mmap) const {
  if (use == WeightUse::matmul && !(fast_products_ && has_fast_product(static_cast<int>(tensor.type)))) {
    for (ggml_backend_buffer_type_t type : repacking_) {
      if (repacks(tensor, type)) return type;
    }
  }
  const auto address = reinterpret_cast<std::uintptr_t>(gguf.data(tensor).data());
  return use_mmap && address % kTensorAlignment == 0 ? nullptr : ggml_backend_cpu_buffer_type();
}

WeightStore::Group& WeightStore::group_of(ggml_backend_buffer_type_t type) {
  const auto found =
      std::find_if(groups_.begin(), groups_.end(), [&](const Group& group) { return group.type == type; });
  if (found != groups_.end()) return *found;
  groups_.push_back({type, new_context(capacity_), nullptr, {}});
  return groups_.back();
}

ggml_tensor* WeightStore::add(const GgufTensor& tensor, ggml_backend_buffer_type_t type) {
  const bool plain = type == nullptr || type == ggml_backend_cpu_buffer_type();
  if (plain) {
    const auto before = plain_.find(&tensor);
    if (before != plain_.end()) return before->second;
  }
  Group& group = group_of(type);
  ggml_tensor* made = new_tensor(group.context.get(), tensor);
  ggml_set_name(made, tensor.name.c_str());
  group.tensors.emplace_back(made, &tensor);
  if (plain) plain_.emplace(&tensor, made);
  return made;
}

void WeightStore::use_in_place(const FileMapping& mapping, const GgufFile& gguf, Group& group) {
  // ggml only reads weights; its interface has no pointer to const.
  auto* base = const_cast<std::byte*>(mapping.bytes().data());
  group.buffer.reset(ggml_backend_cpu_buffer_from_ptr(base, mapping.bytes().size()));
  if (!group.buffer) throw OutOfMemory("no memory for the description of the mapped weights");
  ggml_backend_buffer_set_usage(group.buffer.get(), GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
  for (const auto& [made, tensor] : group.tensors) {
    ggml_backend_tensor_alloc(group.buffer.get(), made, const_cast<std::byte*>(gguf.data(*tensor).data()));
    bytes_.mapped += tensor->bytes;
  }
}

void WeightStore::copy(const FileMapping& mapping, const GgufFile& gguf, Group& group) {
  group.buffer.reset(ggml_backend_alloc_ctx_tensors_from_buft(group.context.get(), group.type));
  if (!group.buffer) {
    std::size_t wanted = 0;
    for (const auto& [made, tensor] : group.tensors) wanted += tensor->bytes;
    throw OutOfMemory(fmt::format("no memory for {} bytes of weights of {}", wanted, gguf.name()));
  }
  ggml_backend_buffer_set_usage(group.buffer.get(), GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
  for (const auto& [made, tensor] : group.tensors) {
    ggml_backend_tensor_set(made, gguf.data(*tensor).data(), 0, tensor->bytes);
    mapping.forget(gguf.data(*tensor));
  }
  const bool plain = group.type == ggml_backend_cpu_buffer_type();
  (plain ? bytes_.copied : bytes_.repacked) += ggml_backend_buffer_get_size(group.buffer.get());
}

}  // namespace razorkv
