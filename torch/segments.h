// Counts of the pools' segments, as torch's memory_stats has them.
#pragma once

#include "core.h"

#include <c10/core/CachingDeviceAllocator.h>

namespace halstream_torch {

// Puts the counts of the runtime into torch's.
void fill_segment_stats(c10::DeviceIndex device, const halstream_memory& memory, c10::CachingDeviceAllocator::DeviceStats& stats);

// Begins to count what was taken and given back from 0.
void reset_segment_stats(c10::DeviceIndex device, const halstream_memory& memory);

}  // namespace halstream_torch
