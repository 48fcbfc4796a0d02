// Batch normalisation over several processes (torch.nn.SyncBatchNorm), whose operators only CUDA has.
#pragma once

#include "operators.h"

namespace halstream_torch {

void batch_norm_stats(Stack& stack, uint64_t seed);
void batch_norm_gather_stats(Stack& stack, uint64_t seed);
void batch_norm_elemt(Stack& stack, uint64_t seed);
void batch_norm_backward_reduce(Stack& stack, uint64_t seed);
void batch_norm_backward_elemt(Stack& stack, uint64_t seed);

}  // namespace halstream_torch
