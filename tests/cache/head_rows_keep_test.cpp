// A head that keeps an arbitrary subset of its rows.
#include <gtest/gtest.h>

#include "cache/head_rows.h"
#include "head_rows_fixture.h"
#include "razorkv/error.h"

namespace razorkv::test {
namespace {

using Positions = std::vector<std::int64_t>;

/// About one row in `of`, never the last one, so that something is dropped.
Positions some_rows(std::int64_t tokens, std::uint32_t of, std::uint32_t seed) {
  std::mt19937 random(seed);
  Positions positions;
  for (std::int64_t p = 0; p + 1 < tokens; ++p) {
    if (random() % of == 0) positions.push_back(p);
  }
  return positions;
}

void keep(Fed& fed, const Positions& positions) {
  fed.head.keep(positions);
  fed.model.keep(positions);
}

// Fed poisons fresh pages with NaN and compares every query with double precision.
TEST(HeadRowsKeep, LaterQueriesSeeTheKeptRowsAndAllThatFollow) {
  for (const RowType type : {RowType::f16, RowType::f32}) {
    for (const std::int64_t prompt : {1, 2, 63, 64, 65, 130, 200}) {
      for (const std::uint32_t of : {1U, 2U, 40U}) {
        Fed fed({}, type);
        fed.feed(prompt);
        keep(fed, some_rows(prompt, of, static_cast<std::uint32_t>(prompt)));
        fed.feed(1);
        fed.feed(7);
        fed.feed(70);
      }
    }
  }
}

TEST(HeadRowsKeep, BytesAreThoseOfTheKeptRowsAndPagesGoBack) {
  Fed fed({}, RowType::f16, 64);
  const std::size_t row = 2 * 64 * 2;
  fed.feed(1000);
  const Positions positions = some_rows(1000, 3, 1);
  keep(fed, positions);
  EXPECT_EQ(fed.pool.stats().live_bytes, 0U);
  EXPECT_EQ(fed.head.usage().rows, std::ssize(positions));
  EXPECT_EQ(fed.head.usage().row_bytes, positions.size() * row);
  EXPECT_EQ(fed.head.usage().allocated_bytes, positions.size() * (row + sizeof(std::int64_t)));
  EXPECT_EQ(fed.head.dropped(), 1000 - std::ssize(positions));
  EXPECT_EQ(fed.head.tokens(), 1000);
  fed.feed(100);  // rows 1000 ... 1099 lie in pages 15, 16 and 17
  EXPECT_EQ(fed.head.usage().rows, std::ssize(positions) + 100);
  EXPECT_EQ(fed.pool.stats().live_bytes, 3 * fed.format.page_bytes());
}

TEST(HeadRowsKeep, RowsKeepTheirPositions) {
  Fed fed({}, RowType::f32);
  fed.feed(80);
  keep(fed, {3, 40, 77});
  fed.feed(2);
  EXPECT_EQ(Positions(fed.head.kept().begin(), fed.head.kept().end()), (Positions{3, 40, 77}));
  std::vector<float> k(8), v(8);
  for (const std::int64_t p : {3, 40, 77, 80, 81}) {
    fed.head.read(p, k.data(), v.data());
    EXPECT_EQ(k, fed.k(p)) << p;
    EXPECT_EQ(v, fed.v(p)) << p;
  }
  for (const std::int64_t p : {0, 4, 39, 79, 82}) {
    EXPECT_THROW(fed.head.read(p, k.data(), v.data()), InvalidArgument) << p;
  }
}

TEST(HeadRowsKeep, KeepingEveryRowChangesNothing) {
  Fed kept({});
  Fed whole({});
  kept.feed(70);
  whole.feed(70);
  Positions all(70);
  for (std::size_t p = 0; p < all.size(); ++p) all[p] = static_cast<std::int64_t>(p);
  kept.head.keep(all);
  EXPECT_TRUE(kept.head.kept().empty());
  EXPECT_EQ(kept.feed(20).out, whole.feed(20).out);
}

TEST(HeadRowsKeep, SnapshotsAndForksGoOnByThemselves) {
  Fed fed({});
  fed.feed(100);
  const HeadRows whole = fed.head;
  const HeadModel whole_model = fed.model;
  for (const std::uint32_t seed : {1U, 2U, 3U}) {  // three choices from one prompt
    fed.head = whole;
    fed.model = whole_model;
    keep(fed, some_rows(100, 4, seed));
    const HeadRows snapshot = fed.head;
    const HeadModel snapshot_model = fed.model;
    fed.salt = 500;
    fed.feed(30);
    fed.head = snapshot;
    fed.model = snapshot_model;
    fed.salt = 0;
    fed.feed(40);
  }
  fed.head = whole;
  fed.model = whole_model;
  fed.feed(3);
}

TEST(HeadRowsKeep, RefusesWhatItCannotKeep) {
  Fed fed({});
  fed.feed(50);
  for (const Positions& wrong : {Positions{-1}, Positions{50}, Positions{3, 3}, Positions{4, 2}}) {
    EXPECT_THROW(fed.head.keep(wrong), InvalidArgument);
  }
  fed.feed(5);  // as before
  keep(fed, {1, 2});
  EXPECT_THROW(fed.head.keep(Positions{1}), InvalidArgument);
  Fed local({false, 4, 6, 0, true});
  local.feed(50);
  EXPECT_THROW(local.head.keep(Positions{1}), InvalidArgument);
}

}  // namespace
}  // namespace razorkv::test
