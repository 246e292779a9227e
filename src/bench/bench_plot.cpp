#include "bench/bench_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/xml_text.h"
#include "bench/statistics.h"
#include "razorkv/error.h"

namespace razorkv::bench {
namespace {

constexpr double kWidth = 640.0;
constexpr double kHeight = 400.0;
constexpr double kLeft = 60.0;
constexpr double kRight = 20.0;
constexpr double kTop = 60.0;
constexpr double kBottom = 90.0;

struct Series {
  std::string_view style;
  std::string label;
  std::vector<double> speed;  // one a depth
};

struct Scale {
  double depth;  // at the right border
  double speed;  // at the top
  double x(double value) const { return kLeft + value / depth * (kWidth - kLeft - kRight); }
  double y(double value) const { return kHeight - kBottom - value / speed * (kHeight - kTop - kBottom); }
};

// 1, 2 or 5 times a power of ten: at most six steps to `most`.
double step_of(double most) {
  const double power = std::pow(10.0, std::floor(std::log10(most / 6.0)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (most / (factor * power) <= 6.0) return factor * power;
  }
  return 10.0 * power;
}

std::string axes(const Scale& scale) {
  std::string svg;
  for (int i = 0; i * step_of(scale.speed) <= scale.speed; ++i) {
    const double speed = i * step_of(scale.speed);
    svg += fmt::format("<path class=\"grid\" d=\"M{:.1f} {:.1f}H{:.1f}\"/>", kLeft, scale.y(speed), kWidth - kRight);
    svg += fmt::format("<text class=\"small\" text-anchor=\"end\" x=\"{:.1f}\" y=\"{:.1f}\">{:g}</text>\n", kLeft - 8,
                       scale.y(speed) + 4, speed);
  }
  for (int i = 0; i * step_of(scale.depth) <= scale.depth; ++i) {
    const double depth = i * step_of(scale.depth);
    svg += fmt::format("<text class=\"small\" text-anchor=\"middle\" x=\"{:.1f}\" y=\"{:.1f}\">{:.0f}</text>\n",
                       scale.x(depth), kHeight - kBottom + 18, depth);
  }
  return svg;
}

std::string line(const Scale& scale, const std::vector<double>& depths, const Series& series) {
  std::string points;
  std::string dots;
  for (std::size_t i = 0; i < depths.size(); ++i) {
    const double x = scale.x(depths[i]);
    const double y = scale.y(series.speed[i]);
    points += fmt::format("{}{:.1f},{:.1f}", i == 0 ? "" : " ", x, y);
    dots += fmt::format(
        "<circle class=\"dot {}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3.5\"><title>{} at {:.0f}: {:.2f} "
        "tokens/s</title></circle>\n",
        series.style, x, y, series.label, depths[i], series.speed[i]);
  }
  return fmt::format("<polyline class=\"line {}\" points=\"{}\"/>\n{}", series.style, points, dots);
}

constexpr const char* kStyle =
    "<style>\n"
    ".paper{fill:#ffffff}.grid{stroke:#d8dce0;stroke-width:1}.line{fill:none;stroke-width:2.5}\n"
    ".ours{stroke:#0b5fb0}.off{stroke:#c2410c}.on{stroke:#8a8f98}\n"
    ".dot.ours{fill:#0b5fb0}.dot.off{fill:#c2410c}.dot.on{fill:#8a8f98}\n"
    "text{fill:#1f2328;font-family:sans-serif;font-size:13px}.head{font-weight:bold}.small{font-size:11px}\n"
    "@media (prefers-color-scheme:dark){.paper{fill:#15181c}.grid{stroke:#2a2f36}text{fill:#e3e6ea}}\n"
    "</style>\n";

}  // namespace

std::string decode_plot_svg(const BenchFacts& facts, const BenchResult& result) {
  std::vector<double> depths;
  Series ours{"ours", escape_xml("razorkv, " + facts.policy), {}};
  Series off{"off", "llama.cpp, flash attention off", {}};
  Series on{"on", "llama.cpp, flash attention on", {}};
  std::int64_t tokens = 0;
  for (const BenchRow& row : result.rows) {
    if (tokens == 0 && !row.test.prefill) tokens = row.test.tokens;
    if (row.test.prefill || row.test.tokens != tokens) continue;
    depths.push_back(static_cast<double>(row.test.depth));
    ours.speed.push_back(median(row.speed));
    if (row.llama[0].empty()) continue;
    off.speed.push_back(median(row.llama[0]));
    on.speed.push_back(median(row.llama[1]));
  }
  if (depths.size() < 2) throw InvalidArgument("--plot: expected decode tests (-n) at two depths (-d) or more");
  std::vector<Series> all{ours};
  if (!off.speed.empty()) all.insert(all.end(), {off, on});
  double most = 0.0;
  for (const Series& series : all) most = std::max(most, *std::max_element(series.speed.begin(), series.speed.end()));
  const Scale scale{depths.back(), 1.05 * most};

  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" role=\"img\">\n",
      kWidth, kHeight);
  svg += kStyle;
  svg += fmt::format("<rect class=\"paper\" width=\"{}\" height=\"{}\"/>\n", kWidth, kHeight);
  svg += fmt::format("<text class=\"head\" x=\"12\" y=\"24\">{}</text>\n", escape_xml(facts.model));
  svg += fmt::format(
      "<text class=\"small\" x=\"12\" y=\"42\">decoded tokens/s against tokens in the cache; {} threads, "
      "medians of {}</text>\n",
      facts.threads, facts.repetitions);
  svg += axes(scale);
  double top = kHeight - kBottom + 40;
  for (const Series& series : all) {
    svg += line(scale, depths, series);
    svg += fmt::format("<path class=\"line {}\" d=\"M{:.0f} {:.0f}h24\"/>", series.style, kLeft, top - 4);
    svg += fmt::format("<text class=\"small\" x=\"{:.0f}\" y=\"{:.0f}\">{}</text>\n", kLeft + 32, top, series.label);
    top += 18;
  }
  return svg + "</svg>\n";
}

}  // namespace razorkv::bench
