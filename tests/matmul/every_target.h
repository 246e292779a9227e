// Runs a test on every Highway target that this CPU and the build of the products have.
#pragma once

#include "matmul/matmul.h"
#include "matmul/simd_targets.h"
// After simd_targets.h.
#include "support/every_target.h"

namespace razorkv::test {

class EveryTarget : public OnEveryTarget<matmul_target> {
 protected:
  void SetUp() override {
    OnEveryTarget::SetUp();
    ASSERT_EQ(matmul_is_fast(), GetParam() == HWY_AVX3_DL);
  }
};

}  // namespace razorkv::test
