// What torch's profilers ask of CUDA: events that are recorded around operators, and ranges.
#pragma once

namespace halstream_torch {

void install_profiler_events();

}  // namespace halstream_torch
