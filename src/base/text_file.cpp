#include "base/text_file.h"

#include <cstddef>
#include <span>

#include "base/input_file.h"

namespace razorkv {

std::string read_text_file(const std::string& path) {
  InputFile file(path);
  std::string out(file.size(), '\0');
  std::size_t done = 0;
  while (done < out.size()) {
    const std::size_t count = file.read(std::as_writable_bytes(std::span(out).subspan(done)));
    if (count == 0) break;
    done += count;
  }
  out.resize(done);
  return out;
}

}  // namespace razorkv
