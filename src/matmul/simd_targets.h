// Which Highway targets the products are compiled for: those of attention and, on x86, the one with VNNI (AVX3_DL).
// Include this before any header of Highway.
#pragma once

#define HWY_WANT_AVX3_DL
#include "attention/simd_targets.h"
