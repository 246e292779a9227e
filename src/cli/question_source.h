// Where the questions of razorkv ask come from: -p, --questions, or standard input.
#pragma once

#include <CLI/CLI.hpp>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace razorkv::cli {

class QuestionSource {
 public:
  void add(CLI::App& command);
  /// Reads --questions. Throws FileError, and InvalidArgument when the file holds none.
  void open();
  /// The next question: those of -p, then those of the file; without either, lines of standard input, asked for on a
  /// terminal. Empty lines are skipped. Empty optional: there is no more.
  std::optional<std::string> next();
  /// Whether somebody types the questions.
  bool interactive() const;

 private:
  bool given() const { return !questions_.empty() || !file_.empty(); }

  std::vector<std::string> questions_;
  std::string file_;
  std::size_t next_ = 0;
};

}  // namespace razorkv::cli
