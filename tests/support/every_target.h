// Runs a test on every Highway target that this CPU and a kernel's build have. To be included after that kernel's
// simd_targets.h, which says what is built.
#pragma once

#include <gtest/gtest.h>
#include <hwy/highway.h>
#include <hwy/targets.h>

#include <cstdint>
#include <string>

namespace razorkv::test {

/// `kRunning` names the target that the kernel runs on.
template <auto kRunning>
class OnEveryTarget : public testing::TestWithParam<std::int64_t> {
 protected:
  void SetUp() override {
    hwy::SetSupportedTargetsForTest(GetParam());
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    ASSERT_STREQ(kRunning(), hwy::TargetName(GetParam()));
  }
  void TearDown() override {
    hwy::SetSupportedTargetsForTest(0);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
};

inline auto all_targets() {
  hwy::SetSupportedTargetsForTest(0);
  return testing::ValuesIn(hwy::SupportedAndGeneratedTargets());
}

inline std::string target_name(const testing::TestParamInfo<std::int64_t>& info) { return hwy::TargetName(info.param); }

}  // namespace razorkv::test
