#include "engine/prefill.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "razorkv/error.h"

namespace razorkv {

std::span<const float> prefill(Engine& engine, KvSequence& sequence, std::span<const Token> tokens,
                               std::int64_t micro_batch, const PrefillProgress& progress) {
  if (tokens.empty()) throw InvalidArgument("nothing to feed: the token list is empty");
  if (micro_batch < 1) throw InvalidArgument("the micro-batch must be at least 1 token");
  const auto total = static_cast<std::int64_t>(tokens.size());
  // One batch is all or nothing by itself, and a snapshot has its price: the tail pages that it shares are copied.
  std::optional<KvSequence> before;
  if (total > micro_batch) before = sequence;
  std::span<const float> logits;
  try {
    for (std::int64_t done = 0; done < total;) {
      const std::int64_t n = std::min(micro_batch, total - done);
      const bool last = done + n == total;
      const std::array<BatchItem, 1> item{
          {{&sequence, tokens.subspan(static_cast<std::size_t>(done), static_cast<std::size_t>(n)), last ? 1 : 0}}};
      logits = engine.decode(item);
      done += n;
      if (progress && !progress(done, total) && !last) throw Cancelled("stopped while reading the prompt");
    }
  } catch (...) {
    if (before) sequence = std::move(*before);
    throw;
  }
  return logits;
}

}  // namespace razorkv
