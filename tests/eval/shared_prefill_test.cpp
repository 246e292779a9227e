// One prefill under many policies: what is fed before compression is what rows are chosen by.
#include "eval/shared_prefill.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <vector>

#include "engine/build_policy.h"
#include "engine/engine_fixture.h"
#include "razorkv/error.h"

namespace razorkv::test {
namespace {

class SharedPrefillTest : public ::testing::Test {
 protected:
  Policy policy(const std::string& name, std::int64_t rows = 0) const {
    PolicyOptions options;
    options.policy = name;
    options.heads = "0:1";
    options.window = 20;
    options.window_divisor = 0;
    options.rows = rows;
    return Policy(std::make_shared<Policy::Impl>(build_policy(HeadShape::of(tiny_.model->config()), 128, options, {})));
  }
  Logits answer(KvSequence sequence) { return tiny_.feed(sequence, random_tokens(6, tiny_.vocabulary(), 3), 6); }

  TinyEngine tiny_{TinyOptions{}};
  const Tokens context_ = random_tokens(150, tiny_.vocabulary(), 1);
  const Tokens question_ = random_tokens(40, tiny_.vocabulary(), 2);
};

TEST_F(SharedPrefillTest, ServesEveryPolicyInAnyOrder) {
  const std::vector<Policy> policies{policy("full"),         policy("razor"),         policy("snapkv", 60),
                                     policy("h2o", 60),      policy("pyramidkv", 80), policy("razor+snapkv", 60),
                                     policy("razor+h2o", 60)};
  SharedPrefill shared(tiny_.engine, policies);
  shared.feed(context_, 64);
  std::vector<Logits> first;
  for (const Policy& one : policies) first.push_back(answer(shared.compressed(one)));
  for (std::size_t i = policies.size(); i-- > 0;) EXPECT_EQ(answer(shared.compressed(policies[i])), first[i]) << i;
  for (std::size_t i = 1; i < first.size(); ++i) EXPECT_NE(first[i], first[i - 1]) << i;

  KvSequence plain = tiny_.engine.new_sequence(tiny_.engine.full_policy());
  tiny_.feed(plain, context_, 64);
  EXPECT_EQ(answer(plain), first[0]);
  EXPECT_EQ(shared.compressed(policies[2]).usage().rows, 4 * 60);
  EXPECT_EQ(shared.compressed(policies[5]).usage().rows, 60 + 3 * (4 + 1 + 20));
}

// Protocol P1: the question is part of the prompt that rows are chosen by.
TEST_F(SharedPrefillTest, AForkGoesOnWithItsOwnQuestion) {
  const std::vector<Policy> policies{policy("snapkv", 50), policy("h2o", 50)};
  SharedPrefill shared(tiny_.engine, policies);
  shared.feed(context_, 64);
  const Logits without = answer(shared.compressed(policies[0]));
  for (int time = 0; time < 2; ++time) {
    SharedPrefill fork = shared;
    fork.feed(question_, 64);
    SharedPrefill alone(tiny_.engine, policies);
    alone.feed(context_, 64);
    alone.feed(question_, 64);
    for (const Policy& one : policies) EXPECT_EQ(answer(fork.compressed(one)), answer(alone.compressed(one)));
    // All 32 rows that vote, and are kept, are the question's.
    EXPECT_EQ(fork.compressed(policies[0]).layer(0)[0].kept().back(), 189);
  }
  EXPECT_EQ(answer(shared.compressed(policies[0])), without);
}

TEST_F(SharedPrefillTest, RefusesAPolicyThatItDidNotRecordFor) {
  SharedPrefill shared(tiny_.engine, std::vector<Policy>{policy("razor")});
  shared.feed(context_, 64);
  EXPECT_THROW(shared.compressed(policy("snapkv", 60)), InvalidArgument);
  SharedPrefill votes(tiny_.engine, std::vector<Policy>{policy("snapkv", 60)});
  votes.feed(context_, 64);
  EXPECT_THROW(votes.compressed(policy("h2o", 60)), InvalidArgument);
}

}  // namespace
}  // namespace razorkv::test
