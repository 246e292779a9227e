#include "support/float_copy.h"

#include <ggml.h>
#include <gguf.h>

#include <memory>
#include <stdexcept>
#include <vector>

namespace razorkv::test {
namespace {

struct Free {
  void operator()(gguf_context* gguf) const { gguf_free(gguf); }
  void operator()(ggml_context* context) const { ggml_free(context); }
};

std::vector<float> as_floats(const ggml_tensor* tensor) {
  std::vector<float> values(static_cast<std::size_t>(ggml_nelements(tensor)));
  ggml_get_type_traits(tensor->type)->to_float(tensor->data, values.data(), ggml_nelements(tensor));
  return values;
}

}  // namespace

void write_float_copy(const std::string& from, const std::string& to) {
  ggml_context* read = nullptr;
  const std::unique_ptr<gguf_context, Free> source(gguf_init_from_file(from.c_str(), {false, &read}));
  const std::unique_ptr<ggml_context, Free> tensors(read);
  if (!source) throw std::runtime_error("cannot read " + from);
  const std::unique_ptr<gguf_context, Free> copy(gguf_init_empty());
  gguf_set_kv(copy.get(), source.get());
  const auto count = static_cast<std::size_t>(gguf_get_n_tensors(source.get()));
  const std::unique_ptr<ggml_context, Free> made(ggml_init({ggml_tensor_overhead() * count, nullptr, true}));
  std::vector<std::vector<float>> contents;
  for (ggml_tensor* old = ggml_get_first_tensor(read); old != nullptr; old = ggml_get_next_tensor(read, old)) {
    if (ggml_get_type_traits(old->type)->to_float == nullptr && old->type != GGML_TYPE_F32) continue;
    ggml_tensor* tensor = ggml_new_tensor(made.get(), GGML_TYPE_F32, ggml_n_dims(old), old->ne);
    ggml_set_name(tensor, ggml_get_name(old));
    if (old->type == GGML_TYPE_F32) {
      tensor->data = old->data;
    } else {
      contents.push_back(as_floats(old));
      tensor->data = contents.back().data();
    }
    gguf_add_tensor(copy.get(), tensor);
  }
  if (!gguf_write_to_file(copy.get(), to.c_str(), false)) throw std::runtime_error("cannot write " + to);
}

}  // namespace razorkv::test
