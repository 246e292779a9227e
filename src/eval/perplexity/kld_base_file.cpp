#include "eval/perplexity/kld_base_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "razorkv/error.h"

namespace razorkv {
namespace {

static_assert(std::endian::native == std::endian::little, "the file is little-endian");

constexpr std::string_view kMagic = "_logits_";
constexpr float kRange = 16.0F;
constexpr float kSteps = 65535.0F;
constexpr std::size_t kHeaderWords = 4;  // u16 of scale and smallest

struct Header {
  std::uint32_t context = 0;
  std::int32_t vocabulary = 0;
  std::int32_t chunks = 0;
};

std::size_t record_words(std::int64_t vocabulary) {
  return 2 * ((static_cast<std::size_t>(vocabulary) + 1) / 2) + kHeaderWords;
}

}  // namespace

std::vector<std::uint16_t> encode_log_probabilities(std::span<const float> logits) {
  const LogProbabilities exact = log_softmax(logits);
  const float largest = logits[static_cast<std::size_t>(exact.top)];
  const float floor = std::max(*std::min_element(logits.begin(), logits.end()), largest - kRange);
  const float scale = (largest - floor) / kSteps;
  const auto smallest = static_cast<float>(static_cast<double>(floor) - exact.offset);
  std::vector<std::uint16_t> out(record_words(static_cast<std::int64_t>(logits.size())), 0);
  std::memcpy(out.data(), &scale, sizeof scale);
  std::memcpy(out.data() + 2, &smallest, sizeof smallest);
  if (scale > 0.0F) {
    for (std::size_t i = 0; i < logits.size(); ++i) {
      if (logits[i] > floor) {
        const long step = std::lrint((logits[i] - floor) / scale);
        out[kHeaderWords + i] = static_cast<std::uint16_t>(std::min(step, 65535L));
      }
    }
  }
  return out;
}

void decode_log_probabilities(std::span<const std::uint16_t> record, std::span<float> out) {
  float scale = 0.0F;
  float smallest = 0.0F;
  std::memcpy(&scale, record.data(), sizeof scale);
  std::memcpy(&smallest, record.data() + 2, sizeof smallest);
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = scale * static_cast<float>(record[kHeaderWords + i]) + smallest;
  }
}

KldBaseWriter::KldBaseWriter(const std::string& path, const TextChunks& chunks, std::int64_t vocabulary)
    : file_(path), missing_(chunks.count() * chunks.scored()) {
  const Header header{static_cast<std::uint32_t>(chunks.context), static_cast<std::int32_t>(vocabulary),
                      static_cast<std::int32_t>(chunks.count())};
  file_.write(std::as_bytes(std::span(kMagic)));
  file_.write(std::as_bytes(std::span(&header, 1)));
  file_.write(std::as_bytes(std::span(chunks.tokens)));
}

void KldBaseWriter::add(std::span<const float> logits) {
  const std::vector<std::uint16_t> record = encode_log_probabilities(logits);
  file_.write(std::as_bytes(std::span(record)));
  --missing_;
}

void KldBaseWriter::commit() {
  if (missing_ != 0) throw InvalidArgument(fmt::format("{} records of the base file are missing", missing_));
  file_.commit();
}

KldBaseReader::KldBaseReader(const std::string& path) : path_(path), file_(path) {
  std::array<char, kMagic.size()> magic{};
  Header header;
  const std::uint64_t head_bytes = magic.size() + sizeof header;
  if (file_.size() >= head_bytes) {
    read(std::as_writable_bytes(std::span(magic)));
    read(std::as_writable_bytes(std::span(&header, 1)));
  }
  if (std::string_view(magic.data(), magic.size()) != kMagic) {
    throw FileError(path + ": not a file of log-probabilities; expected it to begin with _logits_");
  }
  if (header.context < 4 || header.context > (1U << 30U) || header.vocabulary < 1 || header.chunks < 1) {
    throw FileError(fmt::format("{}: a context of {}, a vocabulary of {} and {} chunks cannot be", path, header.context,
                                header.vocabulary, header.chunks));
  }
  vocabulary_ = header.vocabulary;
  chunks_.context = header.context;
  const std::uint64_t tokens = std::uint64_t{header.context} * static_cast<std::uint64_t>(header.chunks);
  const std::uint64_t scored = static_cast<std::uint64_t>(chunks_.scored()) * static_cast<std::uint64_t>(header.chunks);
  const std::uint64_t before_records = head_bytes + tokens * sizeof(Token);
  const std::uint64_t record_bytes = record_words(vocabulary_) * sizeof(std::uint16_t);
  // Division: the product may be larger than 64 bits in a damaged header.
  const std::uint64_t left = file_.size() < before_records ? 0 : file_.size() - before_records;
  if (left % record_bytes != 0 || left / record_bytes != scored) {
    throw FileError(
        fmt::format("{}: has {} bytes; its header promises {} tokens and {} records of {} bytes; it is cut "
                    "short or damaged",
                    path, file_.size(), tokens, scored, record_bytes));
  }
  chunks_.tokens.resize(tokens);
  read(std::as_writable_bytes(std::span(chunks_.tokens)));
  for (const Token token : chunks_.tokens) {
    if (token < 0 || token >= vocabulary_) {
      throw FileError(fmt::format("{}: token {} is outside its vocabulary of {}", path, token, vocabulary_));
    }
  }
  record_.resize(record_words(vocabulary_));
}

void KldBaseReader::read(std::span<std::byte> out) {
  while (!out.empty()) {
    const std::size_t n = file_.read(out);
    if (n == 0) throw FileError(path_ + ": ends too early");
    out = out.subspan(n);
  }
}

LogProbabilities KldBaseReader::next(std::span<float> out) {
  read(std::as_writable_bytes(std::span(record_)));
  decode_log_probabilities(record_, out);
  return {out, 0.0, std::max_element(out.begin(), out.end()) - out.begin()};
}

}  // namespace razorkv
