// Pinned host memory: blocks of the runtime that outlive the copies that use them.
#pragma once

#include "streams.h"

#include <c10/core/Allocator.h>

namespace halstream_torch {

c10::Allocator& pinned_allocator();
bool is_pinned(const void* address);

// Gives kept blocks back to the system; figures of all blocks, in use and kept.
struct PinnedFigures {
  c10::CachingAllocator::Stat allocations, allocated_bytes;  // of the system's memory
  c10::CachingAllocator::Stat requests, active_bytes;        // of what the program uses
  c10::CachingAllocator::DurationStat allocation_time, free_time;  // microseconds
  int64_t allocated = 0, freed = 0;
};
void empty_pinned_cache();
PinnedFigures pinned_figures();
void reset_pinned_figures(bool accumulated, bool peaks);

// Memory of the program's own that it registers as pinned (cudaHostRegister). They return whether that changed it.
bool register_pinned(uint64_t address, uint64_t bytes);
bool unregister_pinned(uint64_t address);
// Notes that `stream` uses the pinned block that `data` owns: it is given out again only after that work.
void record_pinned(const c10::DataPtr& data, halstream_id stream);

}  // namespace halstream_torch
