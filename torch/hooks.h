// What code in torch that is not CUDA's own asks CUDA: devices, pinned memory, generators.
#pragma once

namespace halstream_torch {

void install_hooks();

}  // namespace halstream_torch
