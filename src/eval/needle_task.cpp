#include "eval/needle_task.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <random>
#include <set>

#include "heads/bounded_draw.h"
#include "razorkv/error.h"

namespace razorkv {
namespace {

constexpr std::array<const char*, 11> kCities = {"Chicago", "Toronto", "Paris",  "Madrid",  "Cairo", "Osaka",
                                                 "Lima",    "Oslo",    "Dublin", "Nairobi", "Seoul"};
constexpr std::string_view kBefore =
    "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n<|im_start|>user\nRead the text below and remember "
    "the "
    "special magic numbers hidden in it. I will ask about them afterwards.\n\n";

std::vector<Needle> draw_needles(const NeedleSettings& settings) {
  std::mt19937_64 rng(settings.seed);
  std::vector<std::string> cities(kCities.begin(), kCities.end());
  draw_to_front(rng, cities, cities.size());
  std::vector<Needle> needles;
  std::set<std::string> used;
  for (std::size_t i = 0; i < settings.depths.size(); ++i) {
    Needle& needle = needles.emplace_back();
    needle.city = cities[i];
    needle.depth = settings.depths[i];
    do {
      needle.digits = std::to_string(1000000U + bounded_draw(rng, 9000000U));
    } while (!used.insert(needle.digits).second);
  }
  return needles;
}

void check(const NeedleSettings& settings) {
  if (settings.depths.empty() || static_cast<std::int64_t>(settings.depths.size()) > needle_cities()) {
    throw InvalidArgument(fmt::format("expected 1 to {} depths, found {}", needle_cities(), settings.depths.size()));
  }
  for (const double depth : settings.depths) {
    if (!(depth >= 0.0 && depth <= 100.0)) {
      throw InvalidArgument(fmt::format("a depth must be within 0 and 100 percent, found {}", depth));
    }
  }
}

}  // namespace

std::int64_t needle_cities() { return static_cast<std::int64_t>(kCities.size()); }

NeedleTask make_needle_task(std::string_view haystack, const NeedleSettings& settings, const Tokenize& tokenize) {
  check(settings);
  NeedleTask task;
  task.needles = draw_needles(settings);
  std::vector<std::vector<Token>> inserts;
  task.context = tokenize(kBefore, true);
  auto rest = settings.length - static_cast<std::int64_t>(task.context.size());
  for (Needle& needle : task.needles) {
    inserts.push_back(
        tokenize(fmt::format("\nThe special magic {} number is: {}.\n", needle.city, needle.digits), false));
    needle.question =
        tokenize(fmt::format("\n\nWhat is the special magic {0} number?<|im_end|>\n<|im_start|>assistant\n"
                             "The special magic {0} number is:",
                             needle.city),
                 true);
    rest -= static_cast<std::int64_t>(inserts.back().size());
  }
  if (rest < 1) {
    throw InvalidArgument(fmt::format("a context of {} tokens has no room for {} needles and the prompt, which take {}",
                                      settings.length, task.needles.size(), settings.length - rest));
  }
  // Tokens of running text have a few bytes each: 16 are enough, and spare tokenising the rest of a book.
  const std::size_t part = std::min(haystack.size(), static_cast<std::size_t>(rest) * 16U);
  std::vector<Token> hay = tokenize(haystack.substr(0, part), false);
  if (static_cast<std::int64_t>(hay.size()) < rest && part < haystack.size()) hay = tokenize(haystack, false);
  if (static_cast<std::int64_t>(hay.size()) < rest) {
    throw InvalidArgument(fmt::format("the haystack has {} tokens, {} are needed for a context of {}", hay.size(), rest,
                                      settings.length));
  }
  task.haystack_tokens = rest;

  std::vector<std::size_t> order(task.needles.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return task.needles[a].depth < task.needles[b].depth; });
  std::int64_t done = 0;
  const auto append_hay = [&](std::int64_t end) {
    task.context.insert(task.context.end(), hay.begin() + done, hay.begin() + end);
    done = end;
  };
  for (const std::size_t i : order) {
    append_hay(static_cast<std::int64_t>(static_cast<double>(rest) * task.needles[i].depth / 100.0));
    task.needles[i].position = static_cast<std::int64_t>(task.context.size());
    task.context.insert(task.context.end(), inserts[i].begin(), inserts[i].end());
  }
  append_hay(rest);
  return task;
}

bool needle_found(const Needle& needle, std::string_view answer) {
  return answer.find(needle.digits) != std::string_view::npos;
}

}  // namespace razorkv
