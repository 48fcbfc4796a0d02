// Backward passes of normalizations in 16 bits, whose statistics CUDA keeps in 32 bits.
#pragma once

#include "operators.h"

namespace halstream_torch {

void layer_norm_backward(Stack& stack, uint64_t seed);
void batch_norm_backward(Stack& stack, uint64_t seed);

}  // namespace halstream_torch
