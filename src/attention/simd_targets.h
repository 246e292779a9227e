// Which Highway targets our kernels are compiled for: one policy for the library and its tests. Include this before
// any header of Highway.
#pragma once

// Every target that the compiler knows and the CPU may have, the portable one included, so that tests reach them all.
#define HWY_COMPILE_ALL_ATTAINABLE
// Vectors without a size at compile time cannot be held in arrays of accumulators; these machines use NEON or EMU128.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
