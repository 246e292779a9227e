// Everything that a program needs to run a model with a compressed KV cache.
#pragma once

#include "razorkv/error.h"     // IWYU pragma: export
#include "razorkv/model.h"     // IWYU pragma: export
#include "razorkv/policy.h"    // IWYU pragma: export
#include "razorkv/sampling.h"  // IWYU pragma: export
#include "razorkv/session.h"   // IWYU pragma: export
#include "razorkv/types.h"     // IWYU pragma: export
