// A piece of running English for tests with real models.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace razorkv::test {

/// `bytes` bytes of War and Peace from the start of its first chapters on. Empty where the shared data is missing.
std::optional<std::string> book_text(std::size_t bytes);

}  // namespace razorkv::test
