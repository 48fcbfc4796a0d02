// Device memory for tensors: blocks of the runtime's pools, one pool for each stream.
#pragma once

#include "private_pools.h"

#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/StorageImpl.h>

namespace halstream_torch {

// The allocator of the device type CUDA; never destroyed.
c10::DeviceAllocator& device_allocator();
void install_device_allocator();

// "native", or "cudaMallocAsync" where PYTORCH_ALLOC_CONF asks for it: then a free is an operation of its stream.
const char* allocator_backend();

// Keeps the block that `data` owns from being given out again before `stream` has done the work enqueued until
// the block is dropped: torch's `record_stream`. Does nothing for memory that this module did not allocate.
void record_stream(const c10::DataPtr& data, const c10::Stream& stream);

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

// -- checkpoints of private pools: Inductor's trees of graphs record each graph over the memory that is in use where it
// begins

// Whether a storage owns memory of this allocator, and frees it.
bool owns_memory(const c10::StorageImpl& storage);
// Frees it now; the storage keeps the address.
void free_memory(c10::StorageImpl& storage);

// Where the memory of a pool is that is in use.
std::vector<void*> lent_addresses(const PoolPointer& pool);

// Which memory of a pool is in use at one time.
struct PoolCheckpoint;
std::shared_ptr<PoolCheckpoint> checkpoint_of(const PoolPointer& pool);
// Lets exactly that memory be in use again. Storages that have an address of it, and do not own it, own it then.
// Whoever owned other memory of the pool owns nothing any more.
void restore(const PoolCheckpoint& state, const std::vector<c10::StorageImpl*>& owners);

}  // namespace halstream_torch
