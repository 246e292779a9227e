// Runs a test on every Highway target that this CPU and the products' build have.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "matmul/matmul.h"
#include "matmul/simd_targets.h"
// After simd_targets.h.
#include <hwy/highway.h>
#include <hwy/targets.h>

namespace razorkv::test {

class EveryTarget : public testing::TestWithParam<std::int64_t> {
 protected:
  void SetUp() override {
    hwy::SetSupportedTargetsForTest(GetParam());
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    ASSERT_STREQ(matmul_target(), hwy::TargetName(GetParam()));
    ASSERT_EQ(matmul_is_fast(), GetParam() == HWY_AVX3_DL);
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
