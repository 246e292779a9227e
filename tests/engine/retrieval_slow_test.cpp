// The synthetic retrieval model at 32,768 tokens (evaluation, section 8).
#include <gtest/gtest.h>

#include <string>

#include "engine/retrieval_case.h"

namespace razorkv::test {
namespace {

TEST(RetrievalSlow, Answers32768Tokens) {
  const std::int64_t n = 32768;
  const std::int64_t window = 1024;
  RetrievalCase retrieval(retrieval_task(n, 80, 8), RowType::f16);
  const std::vector<Reply> full = retrieval.ask_all(retrieval.uncompressed(), 2);
  EXPECT_EQ(retrieval.right(full, 2), 40);
  for (const bool streaming : {false, true}) {
    const KvSequence document = retrieval.read(retrieval.policy(kInductionHead, local_rule(window), streaming));
    const std::vector<Reply> found = retrieval.ask_all(document, 2);
    EXPECT_EQ(retrieval.right(found, 2), 40);
    const double moved = farthest(found, full);
    RecordProperty(streaming ? "moved_streaming" : "moved_exact", std::to_string(moved));
    EXPECT_LE(moved, 1e-4);  // as in retrieval_test.cpp
    const KvUsage usage = document.usage();
    EXPECT_LE(usage.rows, n + 3 * (4 + 1 + window));
    EXPECT_LE(usage.allocated_bytes, usage.uncompressed_bytes / 3);
  }
  const KvSequence wrong = retrieval.read(retrieval.policy(kOtherHeads, local_rule(window)));
  const std::vector<Reply> lost = retrieval.ask_all(wrong, 2);
  for (std::size_t i = 0; i < lost.size(); ++i) {
    const std::int64_t position = retrieval.task.needles[2 * i].position;
    if (position >= 3 && position < n - window) {
      EXPECT_EQ(lost[i].tokens.front(), kRetrievalBos) << position;
    }
  }
}

}  // namespace
}  // namespace razorkv::test
