// The figures of each device's memory, the share of it that this process may have, and the error when there is none.
#pragma once

#include "streams.h"

#include <c10/core/CachingDeviceAllocator.h>

#include <array>
#include <functional>
#include <map>
#include <mutex>

namespace halstream_torch {

struct DeviceMemory {
  std::mutex mutex;
  double fraction = 1;
  c10::CachingDeviceAllocator::DeviceStats stats;
  // Behind the uses of freed blocks by other streams, one for each of those: empty_cache waits for them.
  std::map<halstream_id, halstream_id> uses;
  uint64_t generation = 0;
};

// One of each device; never destroyed.
std::array<DeviceMemory, max_devices>& memory();

// The share of a device's memory that this process may have.
void set_memory_fraction(DeviceIndex device, double fraction);
double memory_fraction(DeviceIndex device);

// Sets it to what PYTORCH_CUDA_ALLOC_CONF=per_process_memory_fraction:... says.
void use_memory_fraction_of_environment();

// Takes the device, the bytes asked for, and the bytes that it has in all and free; called without a lock.
using OutOfMemoryObserver = std::function<void(DeviceIndex, size_t, uint64_t, uint64_t)>;
void observe_out_of_memory(OutOfMemoryObserver observer);

// Whether `bytes` more would be above that share.
bool over_fraction(size_t bytes, DeviceIndex device);

// Raises torch's OutOfMemoryError, behind what observes it.
[[noreturn]] void out_of_memory(size_t bytes, DeviceIndex device);

}  // namespace halstream_torch
