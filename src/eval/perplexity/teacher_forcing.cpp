#include "eval/perplexity/teacher_forcing.h"

#include <algorithm>
#include <array>

namespace razorkv {

void feed_and_see(Engine& engine, KvSequence& sequence, std::span<const Token> tokens, std::int64_t first_seen,
                  std::int64_t micro_batch, const SeeLogits& see) {
  const auto total = static_cast<std::int64_t>(tokens.size());
  const std::int64_t vocabulary = engine.model().config().vocabulary;
  for (std::int64_t done = 0; done < total;) {
    const std::int64_t n = std::min(micro_batch, total - done);
    const std::int64_t outputs = std::clamp<std::int64_t>(done + n - first_seen, 0, n);
    const std::array<BatchItem, 1> item{
        {{&sequence, tokens.subspan(static_cast<std::size_t>(done), static_cast<std::size_t>(n)), outputs}}};
    const std::span<const float> logits = engine.decode(item);
    done += n;
    for (std::int64_t i = 0; i < outputs; ++i) {
      see(done - outputs + i,
          logits.subspan(static_cast<std::size_t>(i * vocabulary), static_cast<std::size_t>(vocabulary)));
    }
  }
}

}  // namespace razorkv
