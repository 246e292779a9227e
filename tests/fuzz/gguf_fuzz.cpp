// Everything that reads an untrusted GGUF: parser, getters, configuration, weight table. Errors are fine, crashes are
// not.
#include <cstddef>
#include <cstdint>
#include <span>

#include "model/gguf_file.h"
#include "model/read_config.h"
#include "model/unsupported.h"
#include "model/weight_table.h"
#include "razorkv/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace razorkv;
  try {
    const GgufFile gguf = GgufFile::parse(std::as_bytes(std::span(data, size)), "input");
    for (const GgufTensor& tensor : gguf.tensors()) {
      if (gguf.data(tensor).size() != tensor.bytes) __builtin_trap();
    }
    for (const GgufValue& value : gguf.values()) {
      try {
        (void)gguf.find_unsigned_array(value.key);
      } catch (const FileError&) {
      }
    }
    (void)unsupported_features(gguf);
    const Config config = read_config(gguf);
    ModelWeights weights;
    for (const WeightSpec& spec : weight_table(config, require_architecture(gguf), weights))
      (void)find_weight(gguf, spec);
  } catch (const Error&) {
  }
  return 0;
}
