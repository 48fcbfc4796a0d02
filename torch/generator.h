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

// A place in the sequence of a generator.
struct SequencePlace {
  uint64_t seed = 0;
  uint64_t offset = 0;
};
// The seed of an operator that draws there.
uint64_t seed_at(SequencePlace place);

// While a capture has a generator, its operators draw from the place where the generator stands, and other operators
// may not draw. Afterwards the generator stands where it stood before. False where a capture has it already.
bool begin_captured_draws(const at::Generator& generator, uint64_t capture);
// How far behind that place one operator draws. Raises where the capture does not have the generator.
uint64_t draw_captured(const at::Generator& generator, uint64_t capture);
// How far all of them go together; 0 where the capture does not have the generator.
uint64_t end_captured_draws(const at::Generator& generator, uint64_t capture);
// Whether two generators draw from one sequence.
bool same_numbers(const at::Generator& one, const at::Generator& other);
// Moves the generator on and returns where it stood.
SequencePlace advance(const at::Generator& generator, uint64_t by);

}  // namespace halstream_torch
