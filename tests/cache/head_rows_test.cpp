#include "cache/head_rows.h"

#include <gtest/gtest.h>

#include "head_rows_fixture.h"
#include "razorkv/error.h"

namespace razorkv::test {
namespace {

constexpr ModelRule kSmall{false, 4, 6, 0, true};

// Both prefill modes, T around every border, then decode (O1, row 1): every look() is checked against the model.
TEST(HeadRows, EveryPromptLengthThenDecode) {
  for (const ModelRule rule : {kSmall, ModelRule{false, 0, 1, 0, true}, ModelRule{false, 2, 3, 5, true},
                               ModelRule{false, 0, 6, 0, false}, ModelRule{false, 70, 66, 0, true}, ModelRule{}}) {
    for (const std::int64_t prompt : {1, 2, 3, 4, 5, 9, 10, 11, 12, 13, 63, 64, 65, 135, 136, 137, 138, 200}) {
      for (const bool streaming : {false, true}) {
        Fed fed(rule);
        if (streaming) fed.head.compress(), fed.model.compress();
        fed.feed(prompt);
        fed.head.compress();
        fed.model.compress();
        for (int i = 0; i < 20; ++i) fed.feed(1);
        ASSERT_FALSE(HasFailure()) << "sinks " << rule.sinks << " window " << rule.floor << " prompt " << prompt;
      }
    }
  }
}

TEST(HeadRows, RowTypesAndWidths) {
  for (const RowType type : {RowType::f32, RowType::f16}) {
    for (const std::int64_t width : {1, 8, 20, 64, 100}) {
      Fed fed(kSmall, type, width);
      fed.feed(100);
      fed.head.compress();
      fed.model.compress();
      fed.feed(70);
      fed.feed(1);
    }
  }
}

// O5: the same tokens in batches of any size show every query row the same, bit for bit.
TEST(HeadRows, BatchesEqualSingleSteps) {
  constexpr std::int64_t kTokens = 150;
  for (const ModelRule rule : {kSmall, ModelRule{false, 3, 64, 0, true}, ModelRule{false, 4, 5, 3, true}}) {
    for (const std::int64_t prompt : {std::int64_t{0}, std::int64_t{90}}) {  // streaming; appended after compression
      std::vector<Seen> single;
      for (const std::int64_t batch :
           {std::int64_t{1}, std::int64_t{7}, rule.floor - 1, rule.floor, rule.floor + 1, 2 * rule.floor, kTokens}) {
        Fed fed(rule);
        if (prompt > 0) fed.feed(prompt);
        fed.head.compress();
        fed.model.compress();
        Seen all;
        for (std::int64_t left = kTokens; left > 0; left -= batch) {
          const Seen seen = fed.feed(std::min(left, batch));
          all.visible.insert(all.visible.end(), seen.visible.begin(), seen.visible.end());
          all.comp.insert(all.comp.end(), seen.comp.begin(), seen.comp.end());
          all.out.insert(all.out.end(), seen.out.begin(), seen.out.end());
        }
        if (batch == 1) single.push_back(all);
        const Seen& expected = single.front();
        ASSERT_EQ(all.visible.size(), expected.visible.size());
        for (std::size_t i = 0; i < all.visible.size(); ++i) {
          EXPECT_EQ(all.visible[i].anchors, expected.visible[i].anchors);
          EXPECT_EQ(all.visible[i].begin, expected.visible[i].begin);
          EXPECT_EQ(all.visible[i].end, expected.visible[i].end);
          EXPECT_EQ(all.visible[i].dropped, expected.visible[i].dropped);
        }
        EXPECT_EQ(all.comp, expected.comp);
        ASSERT_EQ(all.out.size(), expected.out.size());
        // Tiles fall differently, so outputs agree to float32 rounding only, of at most 240 rows.
        for (std::size_t i = 0; i < all.out.size(); ++i) ASSERT_NEAR(all.out[i], expected.out[i], 5e-6);
      }
    }
  }
}

// Rows 16 and 17: which positions are kept.
TEST(HeadRows, KeepsExactlySinksAndWindow) {
  for (const ModelRule rule : {ModelRule{false, 2, 6, 0, true}, ModelRule{false, 6, 2, 0, true}}) {
    for (std::int64_t tokens = rule.floor - 1; tokens <= 20; ++tokens) {
      if (tokens == 0) continue;
      Fed fed(rule);
      fed.feed(tokens);
      fed.head.compress();
      std::vector<float> k(8), v(8);
      for (std::int64_t p = 0; p < tokens; ++p) {
        if (p < rule.sinks || p >= tokens - rule.floor) {
          fed.head.read(p, k.data(), v.data());
          for (std::size_t i = 0; i < 8; ++i) {
            EXPECT_EQ(k[i], from_half(to_half(fed.k(p)[i])));
            EXPECT_EQ(v[i], from_half(to_half(fed.v(p)[i])));
          }
        } else {
          EXPECT_THROW(fed.head.read(p, k.data(), v.data()), InvalidArgument) << p << " of " << tokens;
        }
      }
      EXPECT_EQ(fed.head.dropped(), std::max<std::int64_t>(0, tokens - rule.sinks - rule.floor));
      EXPECT_EQ(fed.head.tokens(), tokens);
    }
  }
}

TEST(HeadRows, CompressTwiceAndOnEverythingDoNothing) {
  Fed whole((ModelRule()));
  whole.feed(200);
  whole.head.compress();
  EXPECT_EQ(whole.head.usage().rows, 200);
  EXPECT_EQ(whole.head.dropped(), 0);

  Fed fed(kSmall);
  fed.feed(200);
  fed.head.compress();
  fed.model.compress();
  const HeadUsage before = fed.head.usage();
  fed.head.compress();
  EXPECT_EQ(fed.head.usage().rows, before.rows);
  EXPECT_EQ(fed.head.dropped(), 190);
  fed.feed(3);
}

std::vector<float> attention_of(const HeadRows& head, const std::vector<float>& q, std::int64_t width) {
  HeadViewStorage storage;
  const KvHeadView view = head.view(1, storage);
  std::vector<float> o(q.size()), scratch(attend_scratch_floats(1, width));
  float m = 0.0F;
  float l = 0.0F;
  attend(view, {q.data(), width, width, 1, 0.5F, 0.0F}, {0, 1, 0, std::int64_t{1} << 40, true}, {o.data(), &m, &l},
         scratch.data());
  finish_state(o.data(), o.data(), l, width);
  return o;
}

// Oracle O3 and row 14: when all dropped rows are equal, their mean with weight N is exactly they.
TEST(HeadRows, EqualDroppedRowsAreRepresentedExactly) {
  for (const std::int64_t n : {1, 2, 3, 8, 32, 1000}) {
    constexpr std::int64_t kWidth = 8;
    const RowFormat format{RowType::f32, kWidth};
    PagePool pool(format.page_bytes(), 0);
    HeadRows local(format, {false, 2, 3, 0, true});
    HeadRows whole(format, HeadRule::all());
    const std::int64_t prompt = n + 4;  // the query that follows has window [n + 2, n + 4]
    for (HeadRows* head : {&local, &whole}) {
      const auto write = [&](std::int64_t p) {
        const auto seed = static_cast<std::uint32_t>(p >= 2 && p < 2 + n ? 7 : p + 100);
        head->write(p, random_row(kWidth, seed).data(), random_row(kWidth, seed + 5000).data());
      };
      head->reserve(pool, prompt);
      for (std::int64_t p = 0; p < prompt; ++p) write(p);
      head->commit(prompt);
      head->compress();
      head->reserve(pool, 1);
      write(prompt);
    }
    const std::vector<float> q = random_row(kWidth, 3);
    const std::vector<float> out = attention_of(local, q, kWidth);
    const std::vector<float> expected = attention_of(whole, q, kWidth);
    // The uncompressed side sums n + 5 rows in float32, one rounding of at most 2^-24 each. N off by one shows as 1 /
    // N.
    const double tolerance = 4e-7 + static_cast<double>(n + 5) * 6e-8;
    for (std::size_t i = 0; i < out.size(); ++i) EXPECT_NEAR(out[i], expected[i], tolerance) << n;
  }
}

TEST(HeadRows, RefusesBadRules) {
  const RowFormat format{RowType::f16, 8};
  EXPECT_THROW(HeadRows(format, {false, -1, 4, 0, true}), InvalidArgument);
  EXPECT_THROW(HeadRows(format, {false, 4, 0, 0, true}), InvalidArgument);
  EXPECT_THROW(HeadRows(format, {false, 4, 4, -1, true}), InvalidArgument);
  EXPECT_THROW(HeadRows({RowType::f16, 0}, HeadRule::all()), InvalidArgument);
}

}  // namespace
}  // namespace razorkv::test
