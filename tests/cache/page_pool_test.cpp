#include "cache/page_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <thread>
#include <vector>

#include "razorkv/error.h"
#include "support/resident_memory.h"

namespace razorkv::test {
namespace {

TEST(PagePool, PagesAreAlignedDistinctAndWritable) {
  for (const std::size_t bytes : std::initializer_list<std::size_t>{1, 64, 1000, 4096, 20480, 3 << 20}) {
    PagePool pool(bytes, 0);
    EXPECT_GE(pool.page_bytes(), bytes);
    EXPECT_EQ(pool.page_bytes() % 64, 0U);
    std::vector<PageRef> pages;
    for (int i = 0; i < 50; ++i) {
      pages.push_back(pool.allocate());
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(pages.back().data()) % 64, 0U);
      std::memset(pages.back().data(), i, pool.page_bytes());
    }
    for (int i = 0; i < 50; ++i) {
      const std::byte* data = pages[static_cast<std::size_t>(i)].data();
      EXPECT_EQ(data[0], static_cast<std::byte>(i));
      EXPECT_EQ(data[pool.page_bytes() - 1], static_cast<std::byte>(i));
    }
    EXPECT_EQ(pool.stats().live_bytes, 50 * pool.page_bytes());
    pages.clear();
    EXPECT_EQ(pool.stats().live_bytes, 0U);
    EXPECT_EQ(pool.stats().peak_bytes, 50 * pool.page_bytes());
    pool.trim();
    EXPECT_EQ(pool.stats().reserved_bytes, 0U);
    EXPECT_TRUE(pool.allocate());
  }
}

TEST(PagePool, HandlesCount) {
  PagePool pool(64, 0);
  PageRef a = pool.allocate();
  EXPECT_FALSE(a.shared());
  PageRef b = a;
  EXPECT_TRUE(a.shared());
  EXPECT_EQ(a.data(), b.data());
  const PageRef c = std::move(b);
  EXPECT_FALSE(b);  // NOLINT(bugprone-use-after-move)
  EXPECT_TRUE(c.shared());
  a = PageRef();
  EXPECT_FALSE(c.shared());
  EXPECT_EQ(pool.stats().live_bytes, 64U);
  const PageRef& self = c;
  PageRef d = self;
  d = *&d;
  EXPECT_TRUE(d);
}

TEST(PagePool, BudgetNamesBothNumbers) {
  PagePool pool(4096, 3 * 4096 + 100);
  std::vector<PageRef> pages;
  for (int i = 0; i < 3; ++i) pages.push_back(pool.allocate());
  try {
    pool.allocate();
    FAIL() << "no error";
  } catch (const OutOfBudget& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("12388 bytes"));
    EXPECT_THAT(error.what(), testing::HasSubstr("12288"));
    EXPECT_THAT(error.what(), testing::HasSubstr("--kv-budget-mb"));
  }
  EXPECT_EQ(pool.stats().live_bytes, 3U * 4096U);
  pages.pop_back();
  EXPECT_TRUE(pool.allocate());
}

TEST(PagePool, MemoryGoesBackToTheSystem) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the shadow memory of the thread sanitizer stays resident";
#endif
  // 16384 returns page by page, 5000 (5056) slab by slab.
  for (const std::size_t bytes : std::initializer_list<std::size_t>{16384, 5000}) {
    PagePool pool(bytes, 0);
    const std::size_t before = resident_bytes();
    std::vector<PageRef> pages;
    for (std::size_t held = 0; held < std::size_t{64} << 20U; held += pool.page_bytes()) {
      pages.push_back(pool.allocate());
      std::memset(pages.back().data(), 1, pool.page_bytes());
    }
    EXPECT_GT(resident_bytes(), before + (std::size_t{60} << 20U));
    EXPECT_GE(pool.stats().reserved_bytes, pool.stats().live_bytes);
    pages.resize(pages.size() / 4);
    EXPECT_LT(resident_bytes(), before + (std::size_t{24} << 20U));
    EXPECT_LT(pool.stats().reserved_bytes, std::size_t{20} << 20U);
    pages.clear();
    EXPECT_LT(resident_bytes(), before + (std::size_t{8} << 20U));
    EXPECT_LE(pool.stats().reserved_bytes, std::size_t{3} << 20U);
  }
}

TEST(PagePool, ThreadsShareAndDropHandles) {
  PagePool pool(4096, 0);
  std::vector<PageRef> shared;
  for (int i = 0; i < 20; ++i) shared.push_back(pool.allocate());
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&pool, copies = shared] {
      for (int round = 0; round < 500; ++round) {
        std::vector<PageRef> mine(copies);
        mine.push_back(pool.allocate());
        std::memset(mine.back().data(), round, 4096);
        EXPECT_TRUE(mine.front().shared());
      }
    });
  }
  shared.clear();
  for (std::thread& thread : threads) thread.join();
  threads.clear();
  EXPECT_EQ(pool.stats().live_bytes, 0U);
}

TEST(PagePool, PoisonIsNanInBothTypes) {
  PagePool pool(64, 0);
  pool.poison_new_pages(true);
  const PageRef page = pool.allocate();
  float value = 0.0F;
  std::memcpy(&value, page.data(), sizeof value);
  EXPECT_NE(value, value);
  std::uint16_t half = 0;
  std::memcpy(&half, page.data(), sizeof half);
  EXPECT_EQ(half, 0xFFFF);  // exponent all ones, mantissa not zero
}

}  // namespace
}  // namespace razorkv::test
