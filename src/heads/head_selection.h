// Which KV heads are protected: presets, shares, lists and controls (algorithm section 3).
//
// Shares are of the KV heads outside the model's sliding-window layers, ranked over all layers together. A share p of
// n heads is max(1, floor(p * n)) heads where p > 0: the rounding that gives the counts of the table in algorithm
// section 3.2 (48 heads: 14% + 1% -> 6 + 1, 20% + 1% -> 9 + 1, 30% + 2% -> 14 + 1, 46% + 4% -> 22 + 1).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "heads/head_shape.h"

namespace razorkv {

/// Union of the top `induction` share by induction and the top `echo` share by echo; both in [0, 1].
struct ShareChoice {
  double induction = 0.0;
  double echo = 0.0;
  bool operator==(const ShareChoice&) const = default;
};
struct ListChoice {
  std::vector<HeadId> heads;
  bool operator==(const ListChoice&) const = default;
};
struct AllChoice {
  bool operator==(const AllChoice&) const = default;
};
struct NoneChoice {
  bool operator==(const NoneChoice&) const = default;
};
/// As many heads, drawn uniformly: the control. The count is given, or that of the shares on the same scores.
struct RandomChoice {
  std::uint64_t seed = 0;
  std::variant<std::int64_t, ShareChoice> count;
  bool operator==(const RandomChoice&) const = default;
};

struct HeadChoice {
  std::string text;  ///< as given, for reports
  std::variant<ShareChoice, ListChoice, AllChoice, NoneChoice, RandomChoice> kind;
};

inline constexpr ShareChoice kPaperShares{0.14, 0.01};
inline constexpr ShareChoice kSafeShares{0.30, 0.02};
inline constexpr ShareChoice kWideShares{0.46, 0.04};

/// The --heads argument: `paper`, `safe`, `wide`, `INDUCTION+ECHO` ("0.3+0.02"), `LAYER:HEAD,...` ("16:0,9:1"), `all`,
/// `none`, `random:SEED` (as many as `wide`), `random:SEED:COUNT`, `random:SEED:SHARES` (SHARES a preset or two
/// numbers). Throws InvalidArgument.
HeadChoice parse_head_choice(std::string_view text);

/// Whether select_heads() needs scores for this choice.
bool needs_scores(const HeadChoice& choice);

/// Protected heads, in order of (layer, KV head). Equal scores go to the lower layer, then the lower head.
/// Throws InvalidArgument for heads that the model has not, heads of sliding layers, too many random heads, and
/// missing scores.
std::vector<HeadId> select_heads(const HeadChoice& choice, const HeadShape& shape,
                                 const std::optional<HeadScores>& scores);

/// Eligible heads from the highest score down.
std::vector<HeadId> rank_heads(const HeadShape& shape, const std::vector<std::vector<double>>& kv_scores);

/// Heads that a share stands for.
std::int64_t share_count(double share, std::int64_t heads);

}  // namespace razorkv
