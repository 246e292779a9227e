#include "base/large_stack.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace razorkv {
namespace {

int depth(int n) {
  volatile char frame[1024] = {};
  frame[0] = static_cast<char>(n);
  return n == 0 ? frame[0] : depth(n - 1) + 1 + 0 * frame[1];
}

TEST(LargeStack, HoldsWhatTheCallersStackCannot) {
  int result = 0;
  run_on_large_stack(std::size_t{256} << 20U, [&] { result = depth(50000); });
  EXPECT_EQ(result, 50000);
}

TEST(LargeStack, PassesExceptionsOn) {
  EXPECT_THROW(run_on_large_stack(std::size_t{1} << 20U, [] { throw std::out_of_range("x"); }), std::out_of_range);
}

}  // namespace
}  // namespace razorkv
