// Where a prompt comes from: -p, -f, both, or standard input.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace razorkv::cli {

struct PromptArguments {
  std::string text;
  std::string file;

  void add(CLI::App& command);
  /// The file's text, a blank line and the text of -p; one of them; or standard input, when neither is given or the
  /// file is "-". Throws FileError, and InvalidArgument when there is none and standard input is a terminal.
  std::string read() const;

 private:
  const CLI::Option* text_option_ = nullptr;
};

}  // namespace razorkv::cli
