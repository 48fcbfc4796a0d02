// CPU versions of operators that torch has for CUDA only, or whose CPU version draws from the CPU's generator.
#pragma once

#include "operators.h"

namespace halstream_torch {

using Substitute = void (*)(Stack&, uint64_t seed);

// The function that runs instead of the operator's CPU kernel; null for most operators.
Substitute substitute_of(const c10::OperatorHandle& op);
// Of one with compressed sparse arguments.
Substitute substitute_of_compressed(const c10::OperatorHandle& op);

}  // namespace halstream_torch
