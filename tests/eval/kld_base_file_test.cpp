#include "eval/perplexity/kld_base_file.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "razorkv/error.h"
#include "support/temporary_folder.h"

namespace razorkv {
namespace {

using test::read_bytes;
using test::TemporaryFolder;
using test::write_bytes;

std::vector<float> random_logits(std::size_t count, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(-2.0F, 5.0F);
  std::vector<float> out(count);
  for (float& value : out) value = normal(random);
  return out;
}

TextChunks two_chunks() {
  TextChunks chunks;
  chunks.context = 5;  // scores 5 - 1 - 2 = 2 tokens of each
  chunks.tokens = {1, 2, 3, 4, 5, 6, 0, 2, 1, 3};
  return chunks;
}

template <typename Number>
Number number_at(const std::string& bytes, std::size_t offset) {
  Number out;
  std::memcpy(&out, bytes.data() + offset, sizeof out);
  return out;
}

TEST(KldBaseFile, HasTheBytesOfTheFormat) {
  const TemporaryFolder folder;
  const TextChunks chunks = two_chunks();
  std::vector<std::vector<float>> rows;
  {
    KldBaseWriter writer(folder.file("base"), chunks, 7);
    for (std::uint32_t i = 0; i < 4; ++i) {
      rows.push_back(random_logits(7, i));
      writer.add(rows.back());
    }
    writer.commit();
  }
  const std::string bytes = read_bytes(folder.file("base"));
  const std::size_t record = (2 * 4 + 4) * 2;
  ASSERT_EQ(bytes.size(), 8 + 4 + 4 + 4 + 10 * 4 + 4 * record);
  EXPECT_EQ(bytes.substr(0, 8), "_logits_");
  EXPECT_EQ(number_at<std::uint32_t>(bytes, 8), 5U);
  EXPECT_EQ(number_at<std::int32_t>(bytes, 12), 7);
  EXPECT_EQ(number_at<std::int32_t>(bytes, 16), 2);
  EXPECT_EQ(number_at<std::int32_t>(bytes, 20 + 5 * 4), 6);
  // The third record, from the formulae in double precision.
  const std::size_t at = 60 + 2 * record;
  double largest = -1e9;
  double smallest = 1e9;
  double sum = 0.0;
  for (const float logit : rows[2]) {
    largest = std::max(largest, static_cast<double>(logit));
    smallest = std::min(smallest, static_cast<double>(logit));
  }
  for (const float logit : rows[2]) sum += std::exp(static_cast<double>(logit) - largest);
  const double floor = std::max(smallest, largest - 16.0);
  const double scale = (largest - floor) / 65535.0;
  EXPECT_NEAR(static_cast<double>(number_at<float>(bytes, at)), scale, 1e-7 * scale);
  EXPECT_NEAR(static_cast<double>(number_at<float>(bytes, at + 4)), floor - largest - std::log(sum), 2e-6);
  for (std::size_t i = 0; i < 7; ++i) {
    const double step = std::max(0.0, (static_cast<double>(rows[2][i]) - floor) / scale);
    // Within rounding of 65535 steps in float32.
    EXPECT_NEAR(static_cast<double>(number_at<std::uint16_t>(bytes, at + 8 + 2 * i)), step, 0.52) << i;
  }
}

TEST(KldBaseFile, ReadsBackWithinHalfAStep) {
  const TemporaryFolder folder;
  const TextChunks chunks = two_chunks();
  {
    KldBaseWriter writer(folder.file("base"), chunks, 300);
    for (std::uint32_t i = 0; i < 4; ++i) writer.add(random_logits(300, i));
    writer.commit();
  }
  KldBaseReader reader(folder.file("base"));
  EXPECT_EQ(reader.vocabulary(), 300);
  EXPECT_EQ(reader.chunks().tokens, chunks.tokens);
  std::vector<float> row(300);
  for (std::uint32_t i = 0; i < 4; ++i) {
    const std::vector<float> logits = random_logits(300, i);
    const LogProbabilities exact = log_softmax(logits);
    const LogProbabilities found = reader.next(row);
    EXPECT_EQ(found.top, exact.top);
    const double largest = exact[static_cast<Token>(exact.top)];
    for (Token token = 0; token < 300; ++token) {
      // 16 / 65535 / 2 and float32 rounding of numbers up to 32.
      EXPECT_NEAR(found[token], std::max(exact[token], largest - 16.0), 1.3e-4);
    }
  }
  EXPECT_THROW(reader.next(row), FileError);
}

TEST(KldBaseFile, AllLogitsEqual) {
  const std::vector<std::uint16_t> record = encode_log_probabilities(std::vector<float>(4, 2.5F));
  std::vector<float> out(4);
  decode_log_probabilities(record, out);
  for (const float value : out) EXPECT_NEAR(static_cast<double>(value), -std::log(4.0), 1e-6);
}

TEST(KldBaseFile, IsNotThereWithoutAllRecords) {
  const TemporaryFolder folder;
  {
    KldBaseWriter writer(folder.file("base"), two_chunks(), 7);
    writer.add(random_logits(7, 1));
    EXPECT_THROW(writer.commit(), InvalidArgument);
  }
  EXPECT_TRUE(folder.names().empty());
}

TEST(KldBaseFile, RefusesDamagedFiles) {
  const TemporaryFolder folder;
  const std::string path = folder.file("base");
  {
    KldBaseWriter writer(path, two_chunks(), 7);
    for (std::uint32_t i = 0; i < 4; ++i) writer.add(random_logits(7, i));
    writer.commit();
  }
  const std::string good = read_bytes(path);
  const auto refused = [&](const std::string& bytes) {
    write_bytes(path, bytes);
    EXPECT_THROW(KldBaseReader{path}, FileError) << bytes.size();
  };
  for (std::size_t n = 0; n < good.size(); ++n) refused(good.substr(0, n));
  refused(good + "x");
  std::string other = good;
  other[0] = 'x';
  refused(other);
  other = good;
  other[20] = 7;  // a token outside the vocabulary
  refused(other);
  for (const std::size_t field : {8U, 12U, 16U}) {
    for (const std::uint32_t value : {0U, 0x7fffffffU, 0xffffffffU}) {
      other = good;
      std::memcpy(other.data() + field, &value, sizeof value);
      refused(other);
    }
  }
  EXPECT_THROW(KldBaseReader(folder.file("none")), FileError);
}

}  // namespace
}  // namespace razorkv
