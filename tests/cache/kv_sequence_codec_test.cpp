#include "cache/kv_sequence_codec.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "razorkv/error.h"

namespace razorkv {
namespace {

constexpr std::int64_t kWidth = 8;

struct Case {
  std::int64_t tokens = 0;
  bool streaming = false;
  bool compress = false;
  std::int64_t further = 0;  ///< fed after compress()
  RowType type = RowType::f16;
};

const std::vector<std::int64_t> kSliding = {0, 0, 24};

std::shared_ptr<const KvPolicy> policy(bool streaming) {
  KvPolicy policy{"razor", streaming, {}};
  policy.rules = {{HeadRule::all(), {false, 4, 16, 5, true}},
                  {{false, 2, 70, 0, false}, {false, 0, 1, 0, true}},
                  {HeadRule::all(), HeadRule::all()}};
  return std::make_shared<const KvPolicy>(std::move(policy));
}

struct Cache {
  explicit Cache(const Case& c)
      : format{c.type, kWidth}, pool(format.page_bytes(), 0), sequence(format, policy(c.streaming), kSliding) {
    pool.poison_new_pages(true);
  }

  void feed(std::int64_t rows, std::uint32_t seed) {
    sequence.reserve(pool, rows);
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    std::vector<float> row(2 * kWidth);
    for (std::int64_t l = 0; l < sequence.layer_count(); ++l) {
      for (HeadRows& head : sequence.layer(l)) {
        for (std::int64_t i = 0; i < rows; ++i) {
          for (float& x : row) x = normal(random);
          head.write(head.tokens() + i, row.data(), row.data() + kWidth);
        }
      }
    }
    sequence.commit(rows);
  }

  RowFormat format;
  PagePool pool;
  KvSequence sequence;
};

std::string encoded(const KvSequence& sequence) {
  std::string out;
  BinaryWriter writer([&out](std::span<const std::byte> bytes) {
    out.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  });
  KvSequenceCodec::write(writer, sequence);
  writer.finish();
  return out;
}

KvSequence decoded(const std::string& bytes, KvSequence fresh, PagePool& pool, std::int64_t tokens) {
  BinaryReader in("state", bytes.size(), [rest = std::string_view(bytes)](std::span<std::byte> out) mutable {
    const std::size_t n = std::min(out.size(), rest.size());
    std::memcpy(out.data(), rest.data(), n);
    rest.remove_prefix(n);
    return n;
  });
  KvSequence sequence = KvSequenceCodec::read(in, std::move(fresh), pool, tokens);
  EXPECT_EQ(in.remaining(), 0U);
  return sequence;
}

void expect_equal(const KvSequence& a, const KvSequence& b) {
  ASSERT_EQ(a.tokens(), b.tokens());
  EXPECT_EQ(a.compressed(), b.compressed());
  for (std::int64_t l = 0; l < a.layer_count(); ++l) {
    for (std::size_t h = 0; h < a.layer(l).size(); ++h) {
      const HeadRows& x = a.layer(l)[h];
      const HeadRows& y = b.layer(l)[h];
      EXPECT_EQ(x.dropped(), y.dropped());
      EXPECT_EQ(x.first(), y.first());
      EXPECT_EQ(x.compressing(), y.compressing());
      EXPECT_EQ(x.usage().allocated_bytes, y.usage().allocated_bytes);
      HeadViewStorage storage_x;
      HeadViewStorage storage_y;
      EXPECT_EQ(x.view(0, storage_x).origin, y.view(0, storage_y).origin);
      std::vector<float> row_x(2 * kWidth);
      std::vector<float> row_y(2 * kWidth);
      for (std::int64_t p = 0; p < a.tokens(); ++p) {
        const bool anchor = x.compressing() && p < x.rule().sinks;
        if (p < x.first() && !anchor) continue;
        x.read(p, row_x.data(), row_x.data() + kWidth);
        y.read(p, row_y.data(), row_y.data() + kWidth);
        ASSERT_EQ(row_x, row_y) << "layer " << l << " head " << h << " row " << p;
      }
    }
  }
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const std::int64_t tokens : {0, 1, 3, 4, 24, 63, 64, 65, 128, 300}) {
    all.push_back({tokens, false, false, 0});
    all.push_back({tokens, false, true, 0});
    all.push_back({tokens, false, true, 77, RowType::f32});
    all.push_back({tokens, true, false, 5});
  }
  return all;
}

TEST(KvSequenceCodec, RestoredEqualsSavedAndGoesOnEqually) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(testing::Message() << c.tokens << " tokens, streaming " << c.streaming << ", compressed " << c.compress
                                    << ", further " << c.further);
    Cache saved(c);
    for (std::int64_t fed = 0; fed < c.tokens; fed += 50) saved.feed(std::min<std::int64_t>(50, c.tokens - fed), 7);
    if (c.compress) saved.sequence.compress();
    if (c.further > 0) saved.feed(c.further, 8);
    const std::string bytes = encoded(saved.sequence);

    Cache loaded(c);
    loaded.sequence = decoded(bytes, loaded.sequence, loaded.pool, saved.sequence.tokens());
    expect_equal(saved.sequence, loaded.sequence);
    EXPECT_EQ(saved.sequence.usage().row_bytes, loaded.sequence.usage().row_bytes);
    for (const std::int64_t rows : {1, 66, 3}) {
      saved.feed(rows, 9);
      loaded.feed(rows, 9);
      expect_equal(saved.sequence, loaded.sequence);
    }
    EXPECT_EQ(encoded(saved.sequence), encoded(loaded.sequence));  // sums to the bit
  }
}

TEST(KvSequenceCodec, WritesLiveRowsOnlyAndTheSameBytesEachTime) {
  const Case c{300, false, true, 0};
  std::string poisoned;
  for (const bool poison : {true, false}) {
    Cache cache(c);
    cache.pool.poison_new_pages(poison);
    cache.feed(300, 1);
    cache.sequence.compress();
    const std::string bytes = encoded(cache.sequence);
    if (poison) poisoned = bytes;
    EXPECT_EQ(bytes, poisoned);
    // Rows held, without the compensation rows that usage() counts: 300; 4 + 60; 2 + 70; 0 + 1; 24; 24.
    constexpr std::size_t rows = 300 + 64 + 72 + 1 + 24 + 24;
    constexpr std::size_t counts = 1 + 8 + 6 * (1 + 4 * 8);
    constexpr std::size_t sums = 2 * (2 * kWidth * 8);
    EXPECT_EQ(bytes.size(), rows * 2 * kWidth * 2 + counts + sums + BinaryWriter::kChecksumBytes);
  }
}

TEST(KvSequenceCodec, RefusesCountsThatTheRulesDoNotLeave) {
  const Case c{300, false, true, 0};
  Cache saved(c);
  saved.feed(300, 1);
  saved.sequence.compress();
  const std::string bytes = encoded(saved.sequence);
  for (std::size_t at = 0; at < 1 + 8 + 1 + 4 * 8; ++at) {  // flag, tokens, and all counts of the first head
    std::string bad = bytes;
    bad[at] = static_cast<char>(bad[at] ^ 1);
    Cache loaded(c);
    EXPECT_THROW(decoded(bad, loaded.sequence, loaded.pool, 300), FileError) << at;
    EXPECT_EQ(loaded.pool.stats().live_bytes, 0U) << at;
  }
  Cache loaded(c);
  EXPECT_THROW(decoded(bytes, loaded.sequence, loaded.pool, 299), FileError);
  EXPECT_THROW(decoded(bytes.substr(0, bytes.size() / 2), loaded.sequence, loaded.pool, 300), FileError);
}

TEST(KvSequenceCodec, BudgetTooSmallLeavesNothing) {
  const Case c{300, false, false, 0};
  Cache saved(c);
  saved.feed(300, 1);
  PagePool small(saved.format.page_bytes(), 3 * saved.format.page_bytes());
  EXPECT_THROW(decoded(encoded(saved.sequence), Cache(c).sequence, small, 300), OutOfBudget);
  EXPECT_EQ(small.stats().live_bytes, 0U);
}

}  // namespace
}  // namespace razorkv
