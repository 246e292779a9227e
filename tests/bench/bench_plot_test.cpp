#include "bench/bench_plot.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "razorkv/error.h"

namespace razorkv::bench {
namespace {

BenchRow row(bool prefill, std::int64_t tokens, std::int64_t depth, double speed, bool llama) {
  BenchRow out;
  out.test = {prefill, tokens, depth};
  out.speed = {speed};
  if (llama) out.llama = {{{speed / 2}, {speed / 4}}};
  return out;
}

BenchResult example(bool llama) {
  BenchResult result;
  for (const std::int64_t depth : {0, 4000, 8000}) {
    result.rows.push_back(row(true, 512, depth, 900.0, llama));
    result.rows.push_back(row(false, 32, depth, 100.0 - static_cast<double>(depth) / 100.0, llama));
    result.rows.push_back(row(false, 64, depth, 1.0, llama));
  }
  return result;
}

BenchFacts facts() { return {"A & B", "full: <everything>", 2, 1, KvType::f16, 2e10}; }

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST(BenchPlot, OneLineASeriesWithAPointADepth) {
  const std::string alone = decode_plot_svg(facts(), example(false));
  EXPECT_EQ(count(alone, "<polyline"), 1U);
  EXPECT_EQ(count(alone, "<circle"), 3U);
  EXPECT_NE(alone.find("A &amp; B"), std::string::npos);
  EXPECT_NE(alone.find("razorkv, full: &lt;everything&gt; at 8000: 20.00 tokens/s"), std::string::npos) << alone;
  const std::string beside = decode_plot_svg(facts(), example(true));
  EXPECT_EQ(count(beside, "<polyline"), 3U);
  EXPECT_NE(beside.find("flash attention off at 4000: 30.00 tokens/s"), std::string::npos) << beside;
  EXPECT_NE(beside.find("flash attention on at 0: 25.00 tokens/s"), std::string::npos) << beside;
}

TEST(BenchPlot, DepthGoesRightAndSpeedUp) {
  // 100 tokens/s of 105 at the top, over 250 pixels: 310 - 238.1; depth 8000 at the right border.
  const std::string svg = decode_plot_svg(facts(), example(false));
  EXPECT_NE(svg.find("points=\"60.0,71.9 340.0,167.1 620.0,262.4\""), std::string::npos) << svg;
}

TEST(BenchPlot, NeedsTwoDepths) {
  BenchResult result = example(false);
  result.rows.resize(3);
  EXPECT_THROW(decode_plot_svg(facts(), result), InvalidArgument);
}

}  // namespace
}  // namespace razorkv::bench
