// Where the program made a call: for reports, traces and schedules.
#pragma once

#include <cstdint>

namespace halstream_torch {

// The place of the program's call that leads to the running operator; 0 while nobody listens. An operator of a
// backward pass has no Python frames: it gets the place of the forward call whose gradient it computes.
uint32_t current_site();

// Whether the thread runs an operator of a backward pass.
bool in_backward();

}  // namespace halstream_torch
