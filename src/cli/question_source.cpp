#include "cli/question_source.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <sstream>

#include "base/text_file.h"
#include "razorkv/error.h"

namespace razorkv::cli {
namespace {

bool blank(const std::string& line) { return line.find_first_not_of(" \t\r\n") == std::string::npos; }

}  // namespace

void QuestionSource::add(CLI::App& command) {
  command.add_option("-p,--prompt", questions_, "Question (may be repeated)")->allow_extra_args(false);
  command.add_option("--questions", file_, "File with one question on each line")->type_name("FILE");
}

void QuestionSource::open() {
  if (std::any_of(questions_.begin(), questions_.end(), blank)) throw InvalidArgument("-p: the question is empty");
  if (file_.empty()) return;
  std::istringstream lines(read_text_file(file_));
  const std::size_t before = questions_.size();
  for (std::string line; std::getline(lines, line);) {
    if (line.ends_with('\r')) line.pop_back();
    if (!blank(line)) questions_.push_back(line);
  }
  if (questions_.size() == before) throw InvalidArgument("--questions " + file_ + ": the file holds no question");
}

bool QuestionSource::interactive() const { return !given() && isatty(STDIN_FILENO) != 0; }

std::optional<std::string> QuestionSource::next() {
  if (given()) {
    if (next_ == questions_.size()) return std::nullopt;
    return questions_[next_++];
  }
  std::string line;
  do {
    if (interactive()) {
      std::fputs("> ", stderr);
      std::fflush(stderr);
    }
    if (!std::getline(std::cin, line)) return std::nullopt;
  } while (blank(line));
  if (line == "/exit" || line == "/quit") return std::nullopt;
  return line;
}

}  // namespace razorkv::cli
