// Device memory for tensors: blocks of the runtime's pools, one pool for each stream.
#pragma once

#include "streams.h"

#include <c10/core/CachingDeviceAllocator.h>

#include <functional>

namespace halstream_torch {

// The allocator of the device type CUDA; never destroyed.
c10::DeviceAllocator& device_allocator();
void install_device_allocator();

// "native", or "cudaMallocAsync" where PYTORCH_ALLOC_CONF asks for it: then a free is an operation of its stream.
const char* allocator_backend();

// Keeps the block that `data` owns from being given out again before `stream` has done the work enqueued until
// the block is dropped: torch's `record_stream`. Does nothing for memory that this module did not allocate.
void record_stream(const c10::DataPtr& data, const c10::Stream& stream);

// The share of a device's memory that this process may have.
void set_memory_fraction(DeviceIndex device, double fraction);
double memory_fraction(DeviceIndex device);

// Sets it to what PYTORCH_CUDA_ALLOC_CONF=per_process_memory_fraction:... says.
void use_memory_fraction_of_environment();

// Takes the device, the bytes asked for, and the bytes that it has in all and free; called without a lock.
using OutOfMemoryObserver = std::function<void(DeviceIndex, size_t, uint64_t, uint64_t)>;
void observe_out_of_memory(OutOfMemoryObserver observer);

// Called with the device, the address, the bytes asked for and the stream of each allocation and free, without a lock;
// null: nothing is.
using MemoryObserver = void (*)(bool allocated, DeviceIndex, void* address, size_t bytes, halstream_id stream);
void observe_memory(MemoryObserver observer);

// Whether raw_allocate counts in the figures.
void set_counting_raw(bool on);
bool counts_raw();

// Memory for callers without a tensor (`torch.cuda.caching_allocator_alloc`).
void* raw_allocate(size_t bytes, DeviceIndex device, halstream_id stream);
void raw_free(void* address);

}  // namespace halstream_torch
