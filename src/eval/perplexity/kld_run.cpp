#include "eval/perplexity/kld_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "base/stopwatch.h"
#include "engine/engine_settings.h"
#include "engine/model_handle.h"
#include "eval/perplexity/kld_base_file.h"
#include "eval/perplexity/teacher_forcing.h"
#include "eval/shared_prefill.h"
#include "razorkv/error.h"

namespace razorkv {
namespace {

std::size_t distance_class(std::int64_t distance) {
  const auto above = std::upper_bound(kDistances.begin(), kDistances.end(), distance);
  return static_cast<std::size_t>(above - kDistances.begin()) - 1;
}

/// One column while it runs.
struct Track {
  std::optional<KvSequence> sequence;
  DivergenceSums all;
  std::array<DivergenceSums, kDistances.size()> by_distance;
};

class KldRun {
 public:
  KldRun(const Model& model, const TextChunks& chunks, const std::vector<PolicyColumn>& columns,
         const KldOptions& options, const Progress& progress)
      : chunks_(chunks),
        columns_(columns),
        options_(options),
        progress_(progress),
        shape_(HeadShape::of(model.impl()->loaded->config())),
        vocabulary_(model.impl()->loaded->config().vocabulary),
        engine_(model.impl()->loaded, engine_settings(options.session)),
        policies_(make_policies(model, columns, chunks.first(), progress)),
        tracks_(columns.size()) {
    engine_.set_cancel_flag(options.cancel);
    if (!options.base_file.empty()) open_base();
    if (!options.save_base.empty()) writer_ = std::make_unique<KldBaseWriter>(options.save_base, chunks, vocabulary_);
    base_.resize(static_cast<std::size_t>(options.score_batch * vocabulary_));
    result_.columns.resize(columns.size());
    const auto passes = static_cast<std::int64_t>(columns.size()) + (runs_base() ? 1 : 0);
    total_ = chunks.count() * (chunks.first() + passes * chunks.scored());
  }

  KldResult run() {
    for (std::int64_t chunk = 0; chunk < chunks_.count(); ++chunk) {
      start_chunk(chunk);
      const std::vector<Token> input = chunks_.input(chunk);
      for (std::int64_t done = 0; done < chunks_.scored(); done += options_.score_batch) {
        const std::int64_t n = std::min(options_.score_batch, chunks_.scored() - done);
        const auto begin = static_cast<std::size_t>(chunks_.first() + done);
        score(std::span(input).subspan(begin, static_cast<std::size_t>(n)),
              chunks_.targets(chunk).subspan(static_cast<std::size_t>(done)), done);
      }
      end_chunk();
    }
    if (writer_) writer_->commit();
    for (std::size_t c = 0; c < tracks_.size(); ++c) {
      result_.columns[c].all = tracks_[c].all.summary();
      for (std::size_t d = 0; d < kDistances.size(); ++d) {
        result_.columns[c].by_distance[d] = tracks_[c].by_distance[d].summary();
      }
    }
    return std::move(result_);
  }

 private:
  /// Whether the uncompressed cache is scored beside the columns.
  bool runs_base() const { return !reader_ || writer_; }

  void open_base() {
    reader_ = std::make_unique<KldBaseReader>(options_.base_file);
    if (reader_->vocabulary() != vocabulary_) {
      throw InvalidArgument(fmt::format("{}: is of a vocabulary of {} tokens, the model has {}", options_.base_file,
                                        reader_->vocabulary(), vocabulary_));
    }
    const TextChunks& found = reader_->chunks();
    if (found.context != chunks_.context || found.count() < chunks_.count() ||
        !std::equal(chunks_.tokens.begin(), chunks_.tokens.end(), found.tokens.begin())) {
      throw InvalidArgument(options_.base_file + ": is of another text");
    }
  }

  void advance(std::int64_t tokens) {
    done_ += tokens;
    if (progress_ && !progress_(done_, total_)) throw Cancelled("stopped; no result was written");
  }

  void start_chunk(std::int64_t chunk) {
    const std::vector<Token> input = chunks_.input(chunk);
    const auto prefix = std::span(input).first(static_cast<std::size_t>(chunks_.first()));
    SharedPrefill shared(engine_, policies_);
    const Stopwatch reading;
    shared.feed(prefix, options_.session.micro_batch,
                [&](std::int64_t fed, std::int64_t) { return !progress_ || progress_(done_ + fed, total_); });
    result_.prefill_seconds += reading.seconds();
    advance(chunks_.first());
    whole_.emplace(shared.whole());
    result_.uncompressed_bytes = whole_->usage().allocated_bytes;
    for (std::size_t c = 0; c < tracks_.size(); ++c) {
      tracks_[c].sequence.emplace(shared.compressed(policies_[c]));
      KldColumn& column = result_.columns[c];
      static_cast<PolicyFacts&>(column) = policy_facts(columns_[c], policies_[c], shape_, chunks_.first());
      column.kv_bytes = tracks_[c].sequence->usage().allocated_bytes;
    }
  }

  std::span<float> base_row(std::int64_t index) {
    return std::span(base_).subspan(static_cast<std::size_t>(index * vocabulary_),
                                    static_cast<std::size_t>(vocabulary_));
  }

  void score(std::span<const Token> input, std::span<const Token> targets, std::int64_t distance) {
    const auto n = static_cast<std::int64_t>(input.size());
    std::vector<LogProbabilities> base(input.size());
    if (runs_base()) {
      feed_and_see(engine_, *whole_, input, 0, n, [&](std::int64_t i, std::span<const float> logits) {
        std::copy(logits.begin(), logits.end(), base_row(i).begin());
        base[static_cast<std::size_t>(i)] = log_softmax(base_row(i));
        if (writer_) writer_->add(logits);
      });
      advance(n);
    }
    if (reader_) {
      for (std::int64_t i = 0; i < n; ++i) base[static_cast<std::size_t>(i)] = reader_->next(base_row(i));
    }
    for (std::size_t c = 0; c < tracks_.size(); ++c) {
      Track& track = tracks_[c];
      const Stopwatch scoring;
      double comparing = 0.0;
      feed_and_see(engine_, *track.sequence, input, 0, n, [&](std::int64_t i, std::span<const float> logits) {
        const Stopwatch watch;
        const auto at = static_cast<std::size_t>(i);
        const TokenDivergence token = compare_distributions(base[at], log_softmax(logits), targets[at]);
        track.all.add(token);
        track.by_distance[distance_class(distance + i)].add(token);
        comparing += watch.seconds();
      });
      result_.columns[c].score_seconds += scoring.seconds() - comparing;
      advance(n);
    }
  }

  void end_chunk() {
    ++result_.chunks;
    result_.scored += chunks_.scored();
    if (runs_base()) result_.uncompressed_end_bytes = whole_->usage().allocated_bytes;
    for (std::size_t c = 0; c < tracks_.size(); ++c) {
      result_.columns[c].kv_end_bytes = tracks_[c].sequence->usage().allocated_bytes;
    }
  }

  const TextChunks& chunks_;
  const std::vector<PolicyColumn>& columns_;
  const KldOptions& options_;
  const Progress& progress_;
  HeadShape shape_;
  std::int64_t vocabulary_;
  Engine engine_;
  std::unique_ptr<KldBaseReader> reader_;
  std::unique_ptr<KldBaseWriter> writer_;
  std::vector<Policy> policies_;
  std::vector<Track> tracks_;
  std::optional<KvSequence> whole_;  // keeps everything
  std::vector<float> base_;          // [score_batch, vocabulary]
  KldResult result_;
  std::int64_t done_ = 0;
  std::int64_t total_ = 0;
};

}  // namespace

KldResult run_kld(const Model& model, const TextChunks& chunks, const std::vector<PolicyColumn>& columns,
                  const KldOptions& options, const Progress& progress) {
  check_fits(chunks, model.info().context);
  if (options.score_batch < 1) {
    throw InvalidArgument(fmt::format("tokens scored at once: expected 1 or more, found {}", options.score_batch));
  }
  return KldRun(model, chunks, columns, options, progress).run();
}

}  // namespace razorkv
