// Kernels that write into the results' memory, for operators of which the CPU's kernels return new tensors: it saves
// a copy of the result.
#pragma once

#include "operators.h"

namespace halstream_torch {

using Outputs = c10::SmallVector<at::Tensor, 2>;
// The arguments, and a tensor for each result.
using Direct = void (*)(Stack& arguments, Outputs& results, uint64_t seed);

// The function for an operator, null for most.
Direct direct_of(const c10::OperatorHandle& op);

}  // namespace halstream_torch
