// Which Highway targets our kernels are compiled for: one policy for the library and its tests. Include this before
// any header of Highway.
#pragma once

// Every target that the compiler knows and the CPU may have, the portable one included, so that tests reach them all.
#define HWY_COMPILE_ALL_ATTAINABLE
