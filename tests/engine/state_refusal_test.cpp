// Which state files are refused, and what the refusal says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>

#include "base/sha256.h"
#include "razorkv/error.h"
#include "state_case.h"
#include "support/temporary_folder.h"

namespace razorkv {
namespace {

using test::Running;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr std::size_t kHashBytes = 64;

/// The file with a checksum that fits again.
std::string sealed(std::string file) {
  file.resize(file.size() - kHashBytes);
  return file + sha256_hex(std::as_bytes(std::span(file)));
}

class StateRefusal : public ::testing::Test {
 protected:
  StateRefusal() : running_(test::tiny_model(), test::mixed_policy()) {
    running_.feed_random(150, 1);
    running_.sequence.compress();
    running_.feed_random(3, 2);
    running_.save(path_);
    good_ = test::read_bytes(path_);
    answer_ = running_.greedy(5);
    live_ = running_.engine.pool_stats().live_bytes;
  }

  /// Loads `file` and returns why it was refused.
  std::string refusal(const std::string& file) {
    test::write_bytes(path_, file);
    return refusal(running_);
  }
  std::string refusal(Running& running) const {
    try {
      running.load(path_);
    } catch (const FileError& error) {
      return error.what();
    }
    return "not refused";
  }
  void expect_as_before() {
    EXPECT_EQ(running_.engine.pool_stats().live_bytes, live_);
    EXPECT_EQ(running_.greedy(5), answer_);
  }

  test::TemporaryFolder folder_;
  const std::string path_ = folder_.file("state");
  Running running_;
  std::string good_;
  std::vector<float> answer_;
  std::size_t live_ = 0;
};

TEST_F(StateRefusal, TwoHundredRandomCorruptions) {
  std::mt19937 random(20240715);
  const auto below = [&random](std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random); };
  int refused = 0;
  while (refused < 200) {
    std::string bad = good_;
    switch (below(5)) {
      case 0:
        bad[below(bad.size())] ^= static_cast<char>(1U << below(8));
        break;
      case 1:
        bad.resize(below(bad.size()));
        break;
      case 2:
        for (std::size_t i = 1 + below(200); i > 0; --i) bad += static_cast<char>(below(256));
        break;
      case 3: {  // a lost block
        const std::size_t at = below(bad.size());
        std::fill_n(bad.begin() + static_cast<std::ptrdiff_t>(at), std::min<std::size_t>(512, bad.size() - at), '\0');
        break;
      }
      default:  // early bytes hold the counts
        bad[below(std::min<std::size_t>(600, bad.size()))] ^= static_cast<char>(1U << below(8));
    }
    if (bad == good_) continue;
    test::write_bytes(path_, bad);
    ASSERT_THROW(running_.load(path_), FileError) << "corruption " << refused;
    ++refused;
    if (refused % 20 == 0) expect_as_before();
  }
  expect_as_before();
  test::write_bytes(path_, good_);
  running_.load(path_);
  EXPECT_EQ(running_.greedy(5), answer_);
}

/// Whoever makes a checksum that fits can change rows, but not counts: nothing but FileError comes out.
TEST_F(StateRefusal, ChangedBytesUnderAFittingChecksum) {
  std::mt19937 random(7);
  for (int i = 0; i < 400; ++i) {
    std::string bad = good_;
    const std::size_t reach = i % 2 == 0 ? 700 : bad.size() - kHashBytes;
    for (int change = 0; change < 1 + i % 3; ++change) {
      bad[std::uniform_int_distribution<std::size_t>(0, reach - 1)(random)] = static_cast<char>(random() & 0xffU);
    }
    if (i % 5 == 0) bad.erase(bad.size() / 2, 1 + random() % 100);
    test::write_bytes(path_, sealed(bad));
    try {
      const LoadedState loaded = read_state(path_, running_.engine, running_.policy);
      EXPECT_EQ(loaded.sequence.tokens(), running_.sequence.tokens());
    } catch (const FileError&) {
      continue;
    }
  }
  expect_as_before();
}

TEST_F(StateRefusal, EveryCut) {
  for (std::size_t size = 0; size < good_.size(); size += size < 900 ? 7 : 1501) {
    ASSERT_THAT(refusal(good_.substr(0, size)), HasSubstr(path_)) << size;
  }
  EXPECT_THAT(refusal(good_.substr(0, good_.size() - 1)),
              AllOf(HasSubstr("cut short: expected " + std::to_string(good_.size()) + " bytes"),
                    HasSubstr("found " + std::to_string(good_.size() - 1))));
  EXPECT_THAT(refusal(good_ + "xyz"), HasSubstr("found 3 more"));
  EXPECT_THAT(refusal(""), HasSubstr("found 0"));
  expect_as_before();
}

TEST_F(StateRefusal, NotAStateFile) {
  EXPECT_THAT(refusal("GGUF" + std::string(1000, 'x')), HasSubstr("not a saved razorkv state"));
  EXPECT_THAT(refusal(std::string(70, 'x')), HasSubstr("not a saved razorkv state"));
}

TEST_F(StateRefusal, OtherVersion) {
  std::string bad = good_;
  bad[8] = 2;
  EXPECT_THAT(refusal(sealed(bad)), AllOf(HasSubstr("expected format version 1"), HasSubstr("newer version 2")));
  bad[8] = 0;
  EXPECT_THAT(refusal(sealed(bad)), AllOf(HasSubstr("expected format version 1"), HasSubstr("older version 0")));
}

TEST_F(StateRefusal, Checksum) {
  std::string bad = good_;
  bad[good_.size() - kHashBytes - 1] ^= 1;
  EXPECT_THAT(refusal(bad), AllOf(HasSubstr("corrupt"), HasSubstr(good_.substr(good_.size() - kHashBytes)),
                                  HasSubstr(sealed(bad).substr(good_.size() - kHashBytes))));
  bad = good_;
  bad[30] ^= 1;  // in the fingerprint: corruption must not look like another model
  EXPECT_THAT(refusal(bad), HasSubstr("corrupt"));
}

TEST_F(StateRefusal, OtherModel) {
  Running other(test::tiny_model(false, 2), running_.policy);
  EXPECT_THAT(refusal(other), AllOf(HasSubstr("another model"), HasSubstr(other.engine.model().fingerprint()),
                                    HasSubstr(running_.engine.model().fingerprint())));
}

TEST_F(StateRefusal, OtherRowType) {
  Running other(test::tiny_model(), running_.policy, RowType::f32);
  EXPECT_THAT(refusal(other), HasSubstr("expected cache rows of type f32, found f16"));
}

TEST_F(StateRefusal, OtherPolicy) {
  Running streaming(test::tiny_model(), test::mixed_policy(true));
  EXPECT_THAT(refusal(streaming), HasSubstr("expected streaming prefill, found exact"));

  KvPolicy changed = *running_.policy;
  changed.rules[0][1].window_floor = 17;
  Running other(test::tiny_model(), std::make_shared<const KvPolicy>(changed));
  EXPECT_THAT(refusal(other),
              AllOf(HasSubstr("expected razor (the tests' own), found razor (razor for tests)"),
                    HasSubstr("layer 0, KV head 1: expected 4 sinks and a window of 17 or n/5, with compensation "
                              "token, found 4 sinks and a window of 16 or n/5")));
  EXPECT_EQ(other.sequence.tokens(), 0);

  for (const auto& change :
       {+[](HeadRule& rule) { rule.sinks = 5; }, +[](HeadRule& rule) { rule.window_divisor = 6; },
        +[](HeadRule& rule) { rule.compensate = false; }, +[](HeadRule& rule) { rule = HeadRule::all(); }}) {
    changed = *running_.policy;
    change(changed.rules[0][1]);
    Running one(test::tiny_model(), std::make_shared<const KvPolicy>(changed));
    EXPECT_THAT(refusal(one), HasSubstr("layer 0, KV head 1"));
  }
}

TEST_F(StateRefusal, OtherShape) {
  const std::size_t width = 8 + 4 + 8 + 4 + 64 + 1;
  std::string bad = good_;
  bad[width] = 32;
  EXPECT_THAT(refusal(sealed(bad)), HasSubstr("expected head width 16, found 32"));
  bad = good_;
  bad[width + 8] = 3;
  EXPECT_THAT(refusal(sealed(bad)), HasSubstr("expected layers: 2, found 3"));
  bad = good_;
  bad[width + 24] = 1;
  EXPECT_THAT(refusal(sealed(bad)), HasSubstr("expected KV heads in layer 1: 2, found 1"));
}

TEST_F(StateRefusal, PlacesThatAreNoFile) {
  const auto load_message = [&](const std::string& path) -> std::string {
    try {
      running_.load(path);
    } catch (const FileError& error) {
      return error.what();
    }
    return "not refused";
  };
  EXPECT_THAT(load_message(folder_.path()), HasSubstr("found a folder"));
  EXPECT_THAT(load_message("/dev/zero"), HasSubstr("expected a regular file"));
  EXPECT_THAT(load_message(folder_.file("no/such")), HasSubstr(std::strerror(ENOENT)));
  expect_as_before();
}

TEST_F(StateRefusal, BudgetTooSmall) {
  Running small(test::tiny_model(), running_.policy);
  Engine engine(test::tiny_model(), {1, 1, RowType::f16, 2 * small.engine.pool().page_bytes()});
  EXPECT_THROW(read_state(path_, engine, running_.policy), OutOfBudget);
  EXPECT_EQ(engine.pool_stats().live_bytes, 0U);
}

}  // namespace
}  // namespace razorkv
