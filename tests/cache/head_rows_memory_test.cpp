// Snapshots, rollback, budget and bytes of a head.
#include <gtest/gtest.h>

#include "cache/head_rows.h"
#include "head_rows_fixture.h"
#include "razorkv/error.h"

namespace razorkv::test {
namespace {

constexpr ModelRule kSmall{false, 4, 6, 0, true};

struct Content {
  std::vector<float> rows;
  bool operator==(const Content&) const = default;
};

Content content(const HeadRows& head, std::int64_t width) {
  Content all;
  std::vector<float> k(static_cast<std::size_t>(width)), v(k);
  for (std::int64_t p = 0; p < head.tokens(); ++p) {
    if (p < head.first() && !(head.compressing() && p < head.rule().sinks)) continue;
    head.read(p, k.data(), v.data());
    all.rows.insert(all.rows.end(), k.begin(), k.end());
    all.rows.insert(all.rows.end(), v.begin(), v.end());
  }
  return all;
}

TEST(HeadRowsSnapshot, RowsOfASnapshotNeverChange) {
  for (const bool streaming : {false, true}) {
    for (const std::int64_t prompt : {1, 2, 3, 4, 5, 63, 64, 65, 100, 128}) {
      Fed fed(kSmall);
      if (streaming) fed.head.compress();
      if (streaming) fed.model.compress();
      fed.feed(prompt);
      const HeadRows snapshot = fed.head;
      const Content before = content(snapshot, 8);
      ASSERT_FALSE(before.rows.empty());
      const HeadModel model = fed.model;
      fed.salt = 1000;
      fed.feed(70);  // overwrites the snapshot's tail if it is shared
      EXPECT_EQ(content(snapshot, 8), before) << prompt;

      // Rolling back equals never having fed.
      fed.head = snapshot;
      fed.model = model;
      fed.salt = 2000;
      fed.feed(2);
      fed.feed(80);
      EXPECT_EQ(content(snapshot, 8), before) << prompt;
    }
  }
}

TEST(HeadRowsSnapshot, UncommittedRowsNeverHappened) {
  Fed fed(kSmall);
  fed.feed(60);
  const std::size_t before = fed.head.usage().allocated_bytes;
  fed.salt = 77;
  fed.write(100);
  HeadRows other = fed.head;  // shares pages with rows that were not committed
  fed.salt = 0;
  fed.feed(10);
  fed.feed(1);
  EXPECT_EQ(fed.head.tokens(), 71);
  other.release_reserved();
  EXPECT_EQ(other.usage().allocated_bytes, before);
}

TEST(HeadRowsSnapshot, BothCopiesGoOn) {
  Fed a(kSmall);
  a.feed(70);
  Fed b(kSmall);
  b.head = a.head;
  b.model = a.model;
  b.salt = 500;
  for (int i = 0; i < 10; ++i) {
    a.feed(3);
    b.feed(5);
    if (i == 4) {
      a.head.compress();
      a.model.compress();
    }
  }
  b.head = HeadRows(b.format, rule_of(kSmall));  // its pages belong to a's pool, too
}

TEST(HeadRowsBudget, FailureLeavesTheHeadAsBefore) {
  const RowFormat format{RowType::f16, 8};
  PagePool pool(format.page_bytes(), 3 * format.page_bytes());
  HeadRows head(format, HeadRule::all());
  const auto write = [&](std::int64_t rows) {
    head.reserve(pool, rows);
    for (std::int64_t p = head.tokens(); p < head.tokens() + rows; ++p) {
      head.write(p, random_row(8, static_cast<std::uint32_t>(p)).data(), random_row(8, 9).data());
    }
    head.commit(rows);
  };
  write(100);
  const HeadRows snapshot = head;
  const Content before = content(head, 8);
  EXPECT_THROW(head.reserve(pool, 100), OutOfBudget);  // the shared tail page needs a copy, too
  EXPECT_EQ(pool.stats().live_bytes, 2 * format.page_bytes());
  EXPECT_EQ(head.tokens(), 100);
  EXPECT_EQ(content(head, 8), before);
  write(28);
  EXPECT_THROW(head.reserve(pool, 1), OutOfBudget);
  EXPECT_EQ(content(snapshot, 8), before);
}

// algorithm.md, section 4: rows and bytes by formula, page slack at most one page at each end.
TEST(HeadRowsUsage, BytesEqualTheFormula) {
  const ModelRule rule{false, 4, 40, 5, true};
  Fed fed(rule, RowType::f16, 64);
  const auto row = static_cast<std::size_t>(2 * 64 * 2);
  fed.feed(1000);
  EXPECT_EQ(fed.head.usage().rows, 1000);
  EXPECT_EQ(fed.head.usage().row_bytes, 1000 * row);
  EXPECT_EQ(fed.head.usage().allocated_bytes, 16 * fed.format.page_bytes());
  EXPECT_EQ(fed.pool.stats().live_bytes, fed.head.usage().allocated_bytes);
  fed.head.compress();
  fed.model.compress();
  for (std::int64_t tokens = 1000; tokens < 1200; ++tokens) {
    const std::int64_t window = tokens / 5;
    const HeadUsage usage = fed.head.usage();
    EXPECT_EQ(usage.rows, 4 + 1 + window);
    EXPECT_EQ(usage.row_bytes, static_cast<std::size_t>(4 + window) * row + 2 * 64 * 4);
    const std::int64_t pages = (tokens - 1) / 64 - (tokens - window) / 64 + 1;
    EXPECT_EQ(fed.pool.stats().live_bytes, static_cast<std::size_t>(pages) * fed.format.page_bytes());
    EXPECT_EQ(usage.allocated_bytes, fed.pool.stats().live_bytes + 4 * row + 2 * 64 * 8);
    fed.write(1);
    fed.head.commit(1);
  }
}

// Row 10: a long answer does not outgrow the rule.
TEST(HeadRowsUsage, BoundedInDecode) {
  Fed fed(kSmall);
  fed.feed(8);
  fed.head.compress();
  fed.model.compress();
  for (int i = 0; i < 8 * 10; ++i) {
    fed.feed(1);
    EXPECT_LE(fed.head.usage().rows, 4 + 6 + 1);
    EXPECT_LE(fed.pool.stats().live_bytes, 2 * fed.format.page_bytes());
  }
}

TEST(HeadRowsUsage, NoCompensationNoSums) {
  Fed fed({false, 0, 64, 0, false});
  fed.feed(500);
  fed.head.compress();
  fed.model.compress();
  fed.feed(1);
  EXPECT_EQ(fed.head.usage().rows, 64);
  EXPECT_EQ(fed.head.usage().allocated_bytes, fed.pool.stats().live_bytes);
}

}  // namespace
}  // namespace razorkv::test
