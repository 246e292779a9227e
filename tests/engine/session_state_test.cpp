// Saving and loading through the public session.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "razorkv/error.h"
#include "razorkv/session.h"
#include "support/retrieval_model.h"
#include "support/temporary_folder.h"

namespace razorkv {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class SessionState : public ::testing::Test {
 protected:
  SessionState() : model_(load_model()) {}

  static Model load_model() {
    const std::string path = test::retrieval_model().write_temporary();
    Model model = Model::load(path);
    std::filesystem::remove(path);
    return model;
  }
  Policy policy(const std::string& heads = "1:0") const {
    PolicyOptions options;
    options.heads = heads;
    options.window = 64;
    options.window_divisor = 0;
    return Policy::make(model_, options);
  }
  Session session(const Policy& rules, std::int64_t context = 4096) const {
    SessionOptions options;
    options.context = context;
    options.threads = 1;
    return {model_, options, rules};
  }
  std::vector<float> logits(const Session& session) const { return {session.logits().begin(), session.logits().end()}; }
  /// Key, then four greedy tokens, on a snapshot.
  static std::vector<std::int32_t> ask(Session& session, std::int32_t key) {
    const Snapshot before = session.snapshot();
    std::vector<std::int32_t> answer;
    for (Token next = key; answer.size() < 4;) {
      session.feed({&next, 1});
      next = static_cast<Token>(std::max_element(session.logits().begin(), session.logits().end()) -
                                session.logits().begin());
      answer.push_back(next);
    }
    session.restore(before);
    return answer;
  }

  const Model model_;
  const test::TemporaryFolder folder_;
  const std::string path_ = folder_.file("state");
};

TEST_F(SessionState, TheFileNamesThePolicyThatItNeeds) {
  Session saved = session(policy());
  saved.feed(test::retrieval_task(300, 2, 4).context);
  saved.compress();
  saved.save(path_);
  Session loaded = session(Policy::full(model_));
  EXPECT_THROW(loaded.load(path_), FileError);
  loaded.load_with_policy(path_);
  const Policy& found = loaded.policy();
  EXPECT_EQ(found.name(), "razor");
  EXPECT_EQ(found.description(), policy().description());
  EXPECT_EQ(found.protected_heads(), 1);
  EXPECT_EQ(logits(loaded), logits(saved));
  std::string bytes = test::read_bytes(path_);
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  test::write_bytes(path_, bytes);
  EXPECT_THROW(loaded.load_with_policy(path_), FileError);
}

TEST_F(SessionState, CompressedDocumentAnswersTheSame) {
  const test::RetrievalTask task = test::retrieval_task(1500, 10, 4);
  Session saved = session(policy());
  saved.feed(task.context);
  saved.compress();
  saved.save(path_);
  Session loaded = session(policy());
  loaded.load(path_);
  EXPECT_TRUE(loaded.compressed());
  EXPECT_EQ(loaded.statistics().tokens, saved.statistics().tokens);
  EXPECT_EQ(loaded.statistics().kv_bytes, saved.statistics().kv_bytes);
  EXPECT_EQ(logits(loaded), logits(saved));
  for (const test::Needle& needle : task.needles) {
    EXPECT_EQ(ask(loaded, needle.key()), needle.answer());
    EXPECT_EQ(ask(saved, needle.key()), needle.answer());
    const Token key = needle.key();
    loaded.feed({&key, 1});
    saved.feed({&key, 1});
    EXPECT_EQ(logits(loaded), logits(saved));  // to the bit
    EXPECT_TRUE(std::isfinite(loaded.logits().front()));
  }
}

TEST_F(SessionState, EmptySession) {
  session(policy()).save(path_);
  Session loaded = session(policy());
  loaded.feed(test::retrieval_task(50, 1, 4).context);
  loaded.load(path_);
  EXPECT_EQ(loaded.statistics().tokens, 0);
  EXPECT_TRUE(loaded.logits().empty());
}

TEST_F(SessionState, RefusedFileLeavesTheSessionAsItWas) {
  const test::RetrievalTask task = test::retrieval_task(600, 4, 5);
  Session running = session(policy());
  running.feed(task.context);
  running.compress();
  running.save(path_);
  const std::vector<float> before = logits(running);
  const std::string good = test::read_bytes(path_);

  const auto refusal = [&](Session& target) -> std::string {
    try {
      target.load(path_);
    } catch (const Error& error) {
      return error.what();
    }
    return "not refused";
  };
  std::string bad = good;
  bad[bad.size() / 2] ^= 1;
  test::write_bytes(path_, bad);
  EXPECT_THAT(refusal(running), HasSubstr("corrupt"));
  test::write_bytes(path_, good);
  Session other = session(policy("0:1"));
  EXPECT_THAT(refusal(other),
              AllOf(HasSubstr(running.policy().description()), HasSubstr(other.policy().description())));
  Session small = session(policy(), 599);
  EXPECT_THROW(small.load(path_), ContextFull);
  EXPECT_EQ(small.statistics().tokens, 0);
  EXPECT_EQ(small.statistics().kv_bytes, session(policy()).statistics().kv_bytes);

  EXPECT_EQ(logits(running), before);
  for (const test::Needle& needle : task.needles) EXPECT_EQ(ask(running, needle.key()), needle.answer());
}

TEST_F(SessionState, SnapshotsOfBeforeLoadingStillWork) {
  const test::RetrievalTask task = test::retrieval_task(300, 2, 6);
  Session running = session(policy());
  running.save(path_);
  running.feed(task.context);
  running.compress();
  const Snapshot snapshot = running.snapshot();
  const std::vector<float> before = logits(running);
  running.load(path_);
  EXPECT_EQ(running.statistics().tokens, 0);
  running.restore(snapshot);
  EXPECT_EQ(logits(running), before);
  for (const test::Needle& needle : task.needles) EXPECT_EQ(ask(running, needle.key()), needle.answer());
}

}  // namespace
}  // namespace razorkv
