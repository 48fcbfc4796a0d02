// Random numbers: each operator gets a seed of its own at the call, in program order.
#pragma once

#include "streams.h"

#include <ATen/core/Generator.h>

namespace halstream_torch {

void prepare_generators();
const at::Generator& default_generator(DeviceIndex device);
at::Generator new_generator(DeviceIndex device);

// The seed for one operator that draws from `generator`, which must be a CUDA one. The numbers depend only on
// the generator's seed and on how many operators have drawn from it, never on when the operator runs.
uint64_t draw_seed(const at::Generator& generator);

}  // namespace halstream_torch
