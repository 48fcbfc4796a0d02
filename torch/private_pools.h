// Pools of device memory that captures and torch.cuda.MemPool have for themselves.
#pragma once

#include "streams.h"

#include <c10/core/Allocator.h>

#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace halstream_torch {

using c10::MempoolId_t;

// What a pool lends.
struct PoolMemory {
  halstream_id block = 0;
  void* address = nullptr;
  size_t bytes = 0;
};

// When memory that comes back may be given out again.
enum class Reuse {
  on_same_stream,          // at once: a graph orders the work of one stream only
  after_recorded_streams,  // that block_record_stream named
  never                    // before the pool ends
};

// No other allocation gets it before nobody uses the pool any more: a graph runs on the addresses that it was captured
// with.
class PrivatePool {
 public:
  PrivatePool() = default;
  PrivatePool(const PrivatePool&) = delete;
  PrivatePool& operator=(const PrivatePool&) = delete;

  // Memory for `stream` of at least `bytes` bytes that has come back; without an address if there is none.
  PoolMemory take(halstream_id stream, size_t bytes);
  // Takes the memory at an address that `stream` has given back; whether it was there.
  bool take_at(halstream_id stream, void* address);
  // The stream whose blocks the pool has; nothing runs on it, so that none of its memory has pending work.
  halstream_id owner(DeviceIndex device);
  // Counts memory that was allocated for the pool.
  void lend();
  void give_back(halstream_id stream, const PoolMemory& memory, Reuse reuse);

  void add_user();
  // Returns how many are left. With the last user the pool frees its memory, and from then on what comes back.
  int remove_user();
  int users() const;
  // The owner, or 0 while the pool has not had memory, and the addresses of what it can give out.
  std::pair<halstream_id, std::vector<void*>> idle() const;

 private:
  std::vector<PoolMemory> take_all();
  void free(std::vector<PoolMemory> all);

  mutable std::mutex mutex_;
  int users_ = 0;
  int lent_ = 0;
  halstream_id owner_ = 0;
  std::map<halstream_id, std::multimap<size_t, PoolMemory>> idle_;  // by stream and size
  std::vector<PoolMemory> kept_;
};

using PoolPointer = std::shared_ptr<PrivatePool>;

// The pool of a device with an id, made if there is none.
PoolPointer pool_with_id(DeviceIndex device, MempoolId_t id);
// Ends one use of it.
void release_pool(DeviceIndex device, MempoolId_t id);
// The number of users, 0 without such a pool.
int pool_users(DeviceIndex device, MempoolId_t id);

// A pool that is in use.
struct PoolInUse {
  DeviceIndex device;
  MempoolId_t id;
  PoolPointer pool;
};
std::vector<PoolInUse> pools_in_use();

// Gives allocations for the streams of a capture, or those of the calling thread, to a pool, as one more user of it.
void route_capture(DeviceIndex device, uint64_t capture, MempoolId_t id);
void route_thread(DeviceIndex device, MempoolId_t id);
// Ends it, but not the use of the pool; of several routes of the calling thread to the pool the latest.
void end_route_of_capture(uint64_t capture);
void end_route_of_thread(DeviceIndex device, MempoolId_t id);

// The pool that an allocation for `stream` comes from, null for the device's own.
PoolPointer pool_for(DeviceIndex device, halstream_id stream);

// The number of the capture that the stream takes part in, or 0.
inline uint64_t capture_of(halstream_id stream) {
  uint64_t capture = 0;
  check(core->stream_capture(stream, &capture));
  return capture;
}

}  // namespace halstream_torch
