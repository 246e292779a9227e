// Needles in a haystack: numbers hidden in a long text, and questions about them (evaluation section 3).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "razorkv/types.h"

namespace razorkv {

/// Text to tokens; `special`: text of control tokens becomes those tokens. Adds no BOS or EOS.
using Tokenize = std::function<std::vector<Token>(std::string_view text, bool special)>;

struct NeedleSettings {
  std::int64_t length = 8192;  ///< tokens of the whole context, needles and prompt included
  std::vector<double> depths = {0, 2, 10, 20, 30, 40, 50, 60, 70, 80, 90};  ///< percent of the haystack's tokens
  std::uint64_t seed = 1;                                                   ///< of numbers and order of the cities
};

struct Needle {
  std::string city;
  std::string digits;  ///< seven
  double depth = 0.0;
  std::int64_t position = 0;    ///< of its first token in the context
  std::vector<Token> question;  ///< fed after compression, up to the place of the number
};

struct NeedleTask {
  std::vector<Token> context;  ///< NeedleSettings::length tokens
  std::vector<Needle> needles;
  std::int64_t haystack_tokens = 0;  ///< of these, from the haystack
};

/// The prompt is the ChatML one of algorithm section 3.2. Throws InvalidArgument: more depths than cities, a depth
/// outside 0 to 100, a length with no room for prompt and needles, or a haystack that is too short.
NeedleTask make_needle_task(std::string_view haystack, const NeedleSettings& settings, const Tokenize& tokenize);

/// Whether the digits occur in the answer.
bool needle_found(const Needle& needle, std::string_view answer);

/// Most needles that one task can hold.
std::int64_t needle_cities();

}  // namespace razorkv
