// razorkv_bench_depth0: speed with an almost empty cache, beside libllama: one process, same file, same threads, the
// sides in turn, medians. Prints a Markdown table.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <exception>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "base/processors.h"
#include "bench/peer_llama.h"
#include "engine/engine.h"
#include "engine/prefill.h"
#include "razorkv/error.h"

namespace razorkv::bench {
namespace {

struct Arguments {
  std::string model;
  int threads = 0;
  std::int64_t prompt = 512;
  std::int64_t decode = 64;
  int rounds = 5;
};

using Logits = std::span<const float>;

/// Somebody who can be timed.
struct Side {
  std::string name;
  std::function<void()> clear;
  std::function<Logits(std::span<const Token>)> feed;
  std::vector<double> prefill, decode;  ///< tokens/s, one a round
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : 0.5 * (values[half - 1] + values[half]);
}

double seconds(const std::function<void()>& work) {
  // Threads of the other side spin for a while after their last graph.
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void measure(Side& side, std::span<const Token> prompt, std::span<const Token> answer) {
  side.clear();
  side.prefill.push_back(static_cast<double>(prompt.size()) / seconds([&] { side.feed(prompt); }));
  side.clear();
  side.feed(answer.first(1));
  const auto steps = answer.subspan(1);
  side.decode.push_back(static_cast<double>(steps.size()) / seconds([&] {
                          for (const Token& token : steps) side.feed({&token, 1});
                        }));
}

/// |found - expected| / |expected|.
double distance(const std::vector<float>& found, const std::vector<float>& expected) {
  double difference = 0.0;
  double size = 0.0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    difference += std::pow(double{found[i]} - double{expected[i]}, 2);
    size += std::pow(double{expected[i]}, 2);
  }
  return std::sqrt(difference / size);
}

void check(const Arguments& arguments) {
  if (arguments.prompt < 1 || arguments.decode < 1 || arguments.rounds < 1 || arguments.threads < 0) {
    throw InvalidArgument("expected at least 1 token of each kind, 1 round and 0 threads (all processors)");
  }
}

void run(const Arguments& arguments) {
  check(arguments);
  const int threads = arguments.threads > 0 ? arguments.threads : usable_processors();
  const auto model = LoadedModel::load(arguments.model, {});
  Engine engine(model, {threads, threads, RowType::f16, 0});
  KvSequence sequence = engine.new_sequence(engine.full_policy());
  LlamaPeer llama(arguments.model, {threads, std::max(arguments.prompt, arguments.decode + 1), 512});

  std::vector<Side> sides(3);
  for (const bool flash : {false, true}) {
    Side& side = sides[flash ? 1 : 0];
    side.name = flash ? "libllama, flash attention" : "libllama";
    side.clear = [&llama, flash] { llama.clear(flash); };
    side.feed = [&llama, flash](std::span<const Token> tokens) { return llama.feed(flash, tokens); };
  }
  Side& ours = sides[2];
  ours.name = "razorkv";
  ours.clear = [&] { sequence = engine.new_sequence(engine.full_policy()); };
  ours.feed = [&](std::span<const Token> tokens) { return prefill(engine, sequence, tokens, 512); };

  std::mt19937_64 rng(1);
  std::vector<Token> tokens(static_cast<std::size_t>(std::max(arguments.prompt, arguments.decode + 1)));
  for (Token& token : tokens)
    token = static_cast<Token>(rng() % static_cast<std::uint64_t>(model->config().vocabulary));
  const auto prompt = std::span<const Token>(tokens).first(static_cast<std::size_t>(arguments.prompt));
  const auto answer = std::span<const Token>(tokens).first(static_cast<std::size_t>(arguments.decode + 1));

  std::vector<std::vector<float>> logits;
  for (Side& side : sides) {  // and warms up
    side.clear();
    const Logits last = side.feed(prompt);
    logits.emplace_back(last.begin(), last.end());
    measure(side, prompt, answer);
    side.prefill.clear();
    side.decode.clear();
  }
  for (int round = 0; round < arguments.rounds; ++round) {
    for (Side& side : sides) measure(side, prompt, answer);
  }

  fmt::print(
      "{}, {} threads, medians of {}. Logits after the prompt differ from libllama's by {:.1e}, libllama's with "
      "flash attention by {:.1e}.\n\n",
      arguments.model, threads, arguments.rounds, distance(logits[2], logits[0]), distance(logits[1], logits[0]));
  fmt::print("| tokens/s | {} | {} | {} | of the better |\n|---|---:|---:|---:|---:|\n", sides[0].name, sides[1].name,
             ours.name);
  const auto row = [&](const std::string& name, std::vector<double> Side::*values) {
    const double off = median(sides[0].*values);
    const double on = median(sides[1].*values);
    const double found = median(ours.*values);
    fmt::print("| {} | {:.1f} | {:.1f} | {:.1f} | {:.2f} |\n", name, off, on, found, found / std::max(off, on));
  };
  row(fmt::format("prefill of {}", arguments.prompt), &Side::prefill);
  row(fmt::format("decode of {} from depth 1", arguments.decode), &Side::decode);
}

}  // namespace
}  // namespace razorkv::bench

int main(int argc, char** argv) {
  razorkv::bench::Arguments arguments;
  CLI::App app{"Speed at depth 0 beside libllama"};
  app.add_option("-m,--model", arguments.model, "GGUF file")->required()->type_name("FILE");
  app.add_option("-t,--threads", arguments.threads, "0 = all processors that may be used")->capture_default_str();
  app.add_option("-p,--prompt", arguments.prompt, "Tokens of the prompt")->capture_default_str();
  app.add_option("-n,--decode", arguments.decode, "Tokens decoded one at a time")->capture_default_str();
  app.add_option("-r,--rounds", arguments.rounds, "Rounds")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  try {
    razorkv::bench::run(arguments);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "razorkv_bench_depth0: %s\n", error.what());
    return 1;
  }
  return 0;
}
