#include "heads/profile_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/xml_text.h"
#include "heads/head_selection.h"
#include "razorkv/error.h"

namespace razorkv {
namespace {

using ScoreTable = std::vector<std::vector<double>>;

constexpr int kCell = 22;    // pixels, width and height of one head
constexpr int kLeft = 64;    // room for layer numbers
constexpr int kTop = 92;     // title, panel headings, head numbers
constexpr int kGap = 48;     // between the panels
constexpr int kBottom = 64;  // legend
constexpr int kMinPanel = 150;

const HeadScores& scores_of(const HeadProfile& profile) {
  if (!profile.scores) throw InvalidArgument("the profile has no scores: make one with razorkv profile");
  return *profile.scores;
}

double at(const ScoreTable& table, HeadId head) {
  return table[static_cast<std::size_t>(head.layer)][static_cast<std::size_t>(head.kv_head)];
}

bool is_chosen(std::span<const HeadId> chosen, HeadId head) {
  return std::find(chosen.begin(), chosen.end(), head) != chosen.end();
}

std::string table_cell(const ScoreTable& table, const std::vector<HeadId>& ranked, std::size_t rank,
                       std::span<const HeadId> chosen) {
  const HeadId head = ranked[rank];
  return fmt::format("{:>6} {:>5} {:>10.3f} {}", head.layer, head.kv_head, at(table, head),
                     is_chosen(chosen, head) ? '*' : ' ');
}

/// A score is the opacity of the colour over the cell's ground.
std::string cell(int x, int y, HeadId head, double score, bool sliding, bool marked) {
  const std::string title = fmt::format("<title>layer {}, KV head {}: {:.4f}{}{}</title>", head.layer, head.kv_head,
                                        score, sliding ? ", sliding window" : "", marked ? ", chosen" : "");
  std::string svg = fmt::format("<g>{}<rect class=\"ground\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>", title, x,
                                y, kCell - 2, kCell - 2);
  svg += fmt::format("<rect class=\"{}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill-opacity=\"{:.3f}\"/>",
                     sliding ? "sliding" : "heat", x, y, kCell - 2, kCell - 2, std::clamp(score, 0.0, 1.0));
  if (marked) {
    svg +=
        fmt::format("<rect class=\"mark\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>", x, y, kCell - 2, kCell - 2);
  }
  return svg + "</g>\n";
}

std::string panel(const HeadShape& shape, const ScoreTable& table, std::span<const HeadId> chosen, int left,
                  std::string_view heading) {
  std::string svg = fmt::format("<text class=\"head\" x=\"{}\" y=\"{}\">{}</text>\n", left, kTop - 30, heading);
  std::int64_t columns = 0;
  for (std::size_t layer = 0; layer < shape.layers.size(); ++layer) {
    columns = std::max(columns, shape.layers[layer].kv_heads);
    for (std::int64_t kv_head = 0; kv_head < shape.layers[layer].kv_heads; ++kv_head) {
      const HeadId head{static_cast<std::int64_t>(layer), kv_head};
      svg += cell(left + static_cast<int>(kv_head) * kCell, kTop + static_cast<int>(layer) * kCell, head,
                  at(table, head), shape.layers[layer].sliding, is_chosen(chosen, head));
    }
  }
  for (std::int64_t column = 0; column < columns; ++column) {
    svg += fmt::format("<text class=\"small\" text-anchor=\"middle\" x=\"{}\" y=\"{}\">{}</text>\n",
                       left + static_cast<int>(column) * kCell + kCell / 2 - 1, kTop - 8, column);
  }
  return svg;
}

std::string legend(int left, int top) {
  std::string svg = fmt::format("<text class=\"small\" x=\"{}\" y=\"{}\">0</text>\n", left, top + 14);
  for (int step = 0; step <= 5; ++step) {
    svg += fmt::format(
        "<rect class=\"ground\" x=\"{0}\" y=\"{1}\" width=\"16\" height=\"16\"/>"
        "<rect class=\"heat\" x=\"{0}\" y=\"{1}\" width=\"16\" height=\"16\" fill-opacity=\"{2:.1f}\"/>\n",
        left + 12 + 16 * step, top, 0.2 * step);
  }
  svg += fmt::format("<text class=\"small\" x=\"{}\" y=\"{}\">1 mean attention</text>\n", left + 114, top + 14);
  svg += fmt::format(
      "<rect class=\"mark\" x=\"{}\" y=\"{}\" width=\"16\" height=\"16\"/><text class=\"small\" x=\"{}\" "
      "y=\"{}\">chosen</text>\n",
      left + 1, top + 24, left + 24, top + 37);
  return svg;
}

// Plain colours, no CSS variables: some viewers know media queries at most.
constexpr const char* kStyle =
    "<style>\n"
    ".paper{fill:#ffffff}.ground{fill:#eef0f2}.heat{fill:#0b5fb0}.sliding{fill:#8a8f98}\n"
    ".mark{fill:none;stroke:#c2410c;stroke-width:3}\n"
    "text{fill:#1f2328;font-family:sans-serif;font-size:13px}.head{font-weight:bold}.small{font-size:11px}\n"
    "@media (prefers-color-scheme:dark){.paper{fill:#15181c}.ground{fill:#2a2f36}.heat{fill:#5cb3ff}"
    ".sliding{fill:#7d848e}.mark{stroke:#ff9d4d}text{fill:#e3e6ea}}\n"
    "</style>\n";

}  // namespace

std::string top_heads_table(const HeadProfile& profile, std::span<const HeadId> chosen, std::int64_t rows) {
  const HeadShape& shape = profile.model.shape;
  const KvHeadScores kv = kv_head_scores(shape, scores_of(profile));
  const std::vector<HeadId> induction = rank_heads(shape, kv.induction);
  const std::vector<HeadId> echo = rank_heads(shape, kv.echo);
  std::string text = fmt::format("{:>4}  {:>6} {:>5} {:>10}    {:>6} {:>5} {:>10}\n", "rank", "layer", "head",
                                 "induction", "layer", "head", "echo");
  const std::size_t count = std::min(induction.size(), static_cast<std::size_t>(std::max<std::int64_t>(0, rows)));
  for (std::size_t rank = 0; rank < count; ++rank) {
    text += fmt::format("{:>4}  {}  {}\n", rank + 1, table_cell(kv.induction, induction, rank, chosen),
                        table_cell(kv.echo, echo, rank, chosen));
  }
  return text;
}

std::string heat_map_svg(const HeadProfile& profile, std::span<const HeadId> chosen) {
  const HeadShape& shape = profile.model.shape;
  const KvHeadScores kv = kv_head_scores(shape, scores_of(profile));
  std::int64_t columns = 1;
  for (const LayerHeads& layer : shape.layers) columns = std::max(columns, layer.kv_heads);
  const int panel_width = std::max(kMinPanel, static_cast<int>(columns) * kCell);
  const int width = kLeft + 2 * panel_width + kGap;
  const int layers_height = static_cast<int>(shape.layers.size()) * kCell;
  const int height = kTop + layers_height + kBottom;

  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" role=\"img\">\n",
      width, height);
  svg += kStyle;
  svg += fmt::format("<rect class=\"paper\" width=\"{}\" height=\"{}\"/>\n", width, height);
  const std::string name = profile.model.name.empty() ? profile.model.architecture : profile.model.name;
  svg += fmt::format("<text class=\"head\" x=\"12\" y=\"24\">{}</text>\n", escape_xml(name));
  svg += fmt::format("<text class=\"small\" x=\"12\" y=\"42\">layers down, KV heads across; {} chosen</text>\n",
                     chosen.size());
  for (std::size_t layer = 0; layer < shape.layers.size(); ++layer) {
    svg += fmt::format("<text class=\"small\" text-anchor=\"end\" x=\"{}\" y=\"{}\">{}</text>\n", kLeft - 8,
                       kTop + static_cast<int>(layer) * kCell + kCell / 2 + 3, layer);
  }
  svg += panel(shape, kv.induction, chosen, kLeft, "induction");
  svg += panel(shape, kv.echo, chosen, kLeft + panel_width + kGap, "echo");
  svg += legend(kLeft, kTop + layers_height + 12);
  return svg + "</svg>\n";
}

}  // namespace razorkv
