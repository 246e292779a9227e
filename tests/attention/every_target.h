// Runs a test on every Highway target that this CPU and the build of attention have.
#pragma once

#include "attention/attention.h"
#include "attention/simd_targets.h"
// After simd_targets.h.
#include "support/every_target.h"

namespace razorkv::test {

using EveryTarget = OnEveryTarget<attention_target>;

}  // namespace razorkv::test
