// Policies by name through the public interface, on a model whose profile is made on first use.
#include "razorkv/policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "engine/session_fixture.h"
#include "razorkv/error.h"
#include "support/temporary_folder.h"

namespace razorkv::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class PolicyTest : public ::testing::Test {
 protected:
  void SetUp() override { ::setenv("XDG_CACHE_HOME", cache_.path().c_str(), 1); }
  void TearDown() override { ::unsetenv("XDG_CACHE_HOME"); }

  static Model make_model() {
    TinyOptions options;
    options.layers = 4;
    options.context = 400;  // a short scoring prompt
    return tiny_public_model(options);
  }
  static PolicyOptions options(const std::string& policy, const std::string& heads = "wide") {
    PolicyOptions made;
    made.policy = policy;
    made.heads = heads;
    made.window = 30;
    made.window_divisor = 0;
    return made;
  }
  /// Rows that a session holds of 300 tokens, in all heads; logits are finite and the answer goes on.
  std::int64_t rows_held(const Policy& policy) const {
    Session session(model_, one_thread(KvType::f32), policy);
    session.feed(text(300, 1));
    session.compress();
    const std::size_t row = 2 * 16 * 4;
    const auto rows = static_cast<std::int64_t>(session.statistics().kv_row_bytes / row);
    const std::vector<float> answer = ask(session, text(5, 2));
    EXPECT_TRUE(std::all_of(answer.begin(), answer.end(), [](float logit) { return std::isfinite(logit); }));
    return rows;
  }

  const TemporaryFolder cache_;
  const Model model_ = make_model();
};

constexpr std::int64_t kAllRows = 8 * 300;
constexpr std::int64_t kLocalRows = 4 + 1 + 30;

TEST_F(PolicyTest, EveryNameKeepsWhatItSays) {
  const auto rows = [&](std::int64_t whole) { return whole * 300 + (8 - whole) * kLocalRows; };
  EXPECT_EQ(rows_held(Policy::full(model_)), kAllRows);
  const Policy wide = Policy::make(model_, options("razor"));  // 46% and 4% of 8: 3 and 1 heads
  EXPECT_GE(wide.protected_heads(), 3);
  EXPECT_LE(wide.protected_heads(), 4);
  EXPECT_EQ(rows_held(wide), rows(wide.protected_heads()));
  EXPECT_THAT(wide.description(), AllOf(HasSubstr("of 8 KV heads"), HasSubstr("wide"), HasSubstr("window 30")));
  EXPECT_EQ(rows_held(Policy::make(model_, options("razor", "0.5+0"))), rows(4));
  EXPECT_EQ(rows_held(Policy::make(model_, options("razor", "0:0,3:1"))), rows(2));
  EXPECT_EQ(rows_held(Policy::make(model_, options("razor", "all"))), kAllRows);
  EXPECT_EQ(rows_held(Policy::make(model_, options("razor", "none"))), rows(0));
  const Policy random = Policy::make(model_, options("random"));
  EXPECT_EQ(random.protected_heads(), wide.protected_heads());
  EXPECT_EQ(rows_held(random), rows_held(wide));
  EXPECT_EQ(rows_held(Policy::make(model_, options("razor-nocomp", "none"))), 8 * (4 + 30));
  EXPECT_EQ(rows_held(Policy::make(model_, options("streaming-llm"))), 8 * (4 + 30));
  PolicyOptions duo = options("duo");
  write_bytes(cache_.file("gates.tsv"), "1\t0\n0\t1\n1\t0\n0\t1\n");
  duo.profile = cache_.file("gates.tsv");
  EXPECT_EQ(rows_held(Policy::make(model_, duo)), 4 * 300 + 4 * (4 + 30));
}

TEST_F(PolicyTest, ProtectingEverythingIsTheFullCacheToTheBit) {
  const auto answer = [&](const Policy& policy) {
    Session session(model_, one_thread(), policy);
    session.feed(text(200, 1));
    session.compress();
    return ask(session, text(20, 2));
  };
  EXPECT_EQ(answer(Policy::make(model_, options("razor", "all"))), answer(Policy::full(model_)));
  EXPECT_NE(answer(Policy::make(model_, options("razor", "none"))), answer(Policy::full(model_)));
}

TEST_F(PolicyTest, BudgetsHoldForTheRowsHeld) {
  PolicyOptions wanted = options("razor");
  wanted.window = 4000;
  wanted.budget_tokens = 300;
  wanted.kv_type = KvType::f32;
  wanted.budget_bytes = 1000 * 128;  // of 2400 rows
  const Policy policy = Policy::make(model_, wanted);
  EXPECT_THAT(policy.description(), HasSubstr("budget"));
  const std::int64_t rows = rows_held(policy);
  EXPECT_LE(rows, 1000);
  EXPECT_GT(rows, 1000 - 8);
  wanted.kv_type = KvType::f16;  // twice as many
  EXPECT_GT(rows_held(Policy::make(model_, wanted)), 2000 - 8);
  wanted.budget_bytes = 128;
  EXPECT_THROW(Policy::make(model_, wanted), InvalidArgument);
}

TEST_F(PolicyTest, RefusalsAndCancelling) {
  EXPECT_THROW(Policy::make(model_, options("h2o")), InvalidArgument);
  EXPECT_THROW(Policy::make(model_, options("razor", "nine")), InvalidArgument);
  PolicyOptions without = options("razor");
  without.create_profile = false;
  EXPECT_THROW(Policy::make(model_, without), FileError);
  EXPECT_THROW(Policy::make(model_, options("razor"), [](std::int64_t, std::int64_t) { return false; }), Cancelled);
  EXPECT_NO_THROW(Policy::make(model_, options("razor")));
  EXPECT_NO_THROW(Policy::make(model_, without));  // it is there now
}

}  // namespace
}  // namespace razorkv::test
