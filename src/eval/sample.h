// What every generated or read evaluation task hands to the runner: a context, its questions, and how they are scored.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace razorkv {

/// One question about a context. Its text follows the compressed context (protocol P2) or is read before compression
/// (P1); `answer_prefix` follows it, after the assistant's header where a chat template is used.
struct Question {
  std::string text;
  std::string answer_prefix;
  std::vector<std::string> references;
  std::vector<std::string> classes;   ///< all labels, for classification only
  std::int64_t max_new_tokens = 128;  ///< greedy
  bool first_line_only = false;       ///< the prediction ends at its first newline
};

/// One context and the questions that share its prefill.
struct Sample {
  std::string task;  ///< for example "ruler/niah_single_1"
  std::string id;    ///< unique within the task
  std::string context;
  std::vector<Question> questions;
  std::map<std::string, double> coordinates;  ///< for example {"length", 8192}, {"depth", 50}
};

/// Score of a prediction, 0 to 1.
using Metric = std::function<double(const std::string& prediction, const Question& question)>;

}  // namespace razorkv
