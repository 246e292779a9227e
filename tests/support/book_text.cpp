#include "support/book_text.h"

#include <fstream>
#include <iterator>

#include "support/test_files.h"

namespace razorkv::test {

std::optional<std::string> book_text(std::size_t bytes) {
  const auto path = data_file("books/pg2600_war_and_peace.txt");
  if (!path) return std::nullopt;
  std::ifstream in(*path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  // Behind the licence and the table of contents.
  constexpr std::size_t start = 20000;
  if (text.size() < start + bytes) return std::nullopt;
  return text.substr(start, bytes);
}

}  // namespace razorkv::test
