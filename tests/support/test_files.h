// Where the tests find data and models that are not part of the source tree.
#pragma once

#include <optional>
#include <string>

namespace razorkv::test {

/// Path of a file of the shared data, e.g. "models/stories260K.bin": under $RAZORKV_DATA, or under the first
/// shared/data folder from the working folder or the source tree upwards. Empty where there is none.
std::optional<std::string> data_file(const std::string& name);

/// Path of a fetched model, e.g. "smollm2-135m-instruct-q4_1.gguf": under $RAZORKV_MODELS, or razorkv/models in the
/// user's cache folder ($XDG_CACHE_HOME, ~/.cache). Empty where there is none.
std::optional<std::string> model_file(const std::string& name);

inline constexpr const char* kSmolLm2 = "smollm2-135m-instruct-q4_1.gguf";
inline constexpr const char* kQwenCoder = "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf";
inline constexpr const char* kGemma3 = "gemma-3-270m-q4_k_m.gguf";

/// Text for GTEST_SKIP.
std::string missing_data(const std::string& name);
std::string missing_model(const std::string& name);

}  // namespace razorkv::test
