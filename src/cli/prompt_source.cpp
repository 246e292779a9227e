#include "cli/prompt_source.h"

#include <unistd.h>

#include <array>
#include <cstdio>

#include "base/text_file.h"
#include "razorkv/error.h"

namespace razorkv::cli {
namespace {

std::string read_standard_input() {
  std::string out;
  std::array<char, 65536> buffer{};
  for (;;) {
    const std::size_t count = std::fread(buffer.data(), 1, buffer.size(), stdin);
    out.append(buffer.data(), count);
    if (count < buffer.size()) break;
  }
  if (std::ferror(stdin) != 0) throw FileError("cannot read standard input");
  return out;
}

}  // namespace

void PromptArguments::add(CLI::App& command) {
  text_option_ = command.add_option("-p,--prompt", text, "Prompt; with -f it follows the file after a blank line");
  command.add_option("-f,--file", file, "File with the prompt; - = standard input")->type_name("FILE");
}

std::string PromptArguments::read() const {
  const bool has_text = text_option_ != nullptr && text_option_->count() > 0;
  if (file.empty() && has_text) return text;
  if (file.empty() && isatty(STDIN_FILENO) != 0) {
    throw InvalidArgument("no prompt: give one with -p, with -f FILE, or on standard input");
  }
  std::string out = file.empty() || file == "-" ? read_standard_input() : read_text_file(file);
  if (has_text) {
    while (!out.empty() && (out.back() == '\n' || out.back() == '\r')) out.pop_back();
    out += "\n\n" + text;
  }
  return out;
}

}  // namespace razorkv::cli
