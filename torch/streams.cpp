#include "streams.h"

#include "gpu_trace.h"
#include "used_devices.h"

#include <c10/util/Exception.h>

#include <array>
#include <atomic>
#include <map>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace halstream_torch {

namespace {

constexpr size_t streams_per_pool = 32;
constexpr int greatest_priority = -3;

std::array<halstream_id, max_devices> default_streams{};
thread_local DeviceIndex thread_device = 0;
thread_local std::array<c10::StreamId, max_devices> thread_streams{};

struct StreamPools {
  std::mutex mutex;
  struct Pool {
    std::vector<halstream_id> streams;
    size_t next = 0;
  };
  std::map<std::pair<DeviceIndex, int>, Pool> pools;
  std::unordered_map<uint64_t, halstream_id> by_handle;
};

// Never destroyed: threads may still ask for streams while the process ends.
StreamPools& stream_pools() {
  static auto* all = new StreamPools();
  return *all;
}

}  // namespace

void prepare_streams() {
  int32_t count = 0;
  check(core->device_count(&count));
  TORCH_CHECK(count <= max_devices, "halstream has ", count, " devices; the module for torch supports ", max_devices);
  for (int32_t i = 0; i < count; i++) check(core->stream_default(i, &default_streams[i]));
  set_runtime_devices(static_cast<DeviceIndex>(count));
}

DeviceIndex current_device() noexcept { return thread_device; }
void set_device_unchecked(DeviceIndex device) noexcept {
  if (device >= 0 && device < runtime_devices()) thread_device = device;
}

static void check_index(DeviceIndex device) {
  choose_devices();
  if (C10_UNLIKELY(device < 0 || device >= device_count())) {
    throw c10::AcceleratorError(
        {__func__, __FILE__, static_cast<uint32_t>(__LINE__)}, 101,
        c10::str("CUDA error: invalid device ordinal (", static_cast<int>(device), " of ",
                 static_cast<int>(device_count()), " devices)"));
  }
}

DeviceIndex exchange_device(DeviceIndex device) {
  check_index(device);
  auto before = thread_device;
  thread_device = device;
  return before;
}

DeviceIndex resolve_device(DeviceIndex index) {
  if (index < 0) return thread_device;
  check_index(index);
  return index;
}

DeviceIndex resolve_device_of_stream(DeviceIndex index) {
  choose_devices();
  TORCH_CHECK(
      index < device_count(), "Device index value ", static_cast<int>(index), " is out of index range [0, ",
      static_cast<int>(device_count()), ")");
  return index < 0 ? thread_device : index;
}

static std::atomic<bool> used[max_devices];

void mark_used(DeviceIndex device) noexcept {
  auto& mark = used[device];
  if (!mark.load(std::memory_order_relaxed)) mark.store(true, std::memory_order_relaxed);
}

bool is_used(DeviceIndex device) noexcept {
  return device >= 0 && device < max_devices && used[device].load(std::memory_order_relaxed);
}

bool any_is_used() noexcept {
  for (const auto& mark : used) {
    if (mark.load(std::memory_order_relaxed)) return true;
  }
  return false;
}

halstream_id default_stream(DeviceIndex device) { return default_streams[device]; }
c10::StreamId current_stream_id(DeviceIndex device) { return thread_streams[device]; }
halstream_id current_stream(DeviceIndex device) {
  mark_used(device);
  auto id = thread_streams[device];
  return id != 0 ? id : default_streams[device];
}

halstream_id runtime_stream(const c10::Stream& stream) {
  return stream.id() != 0 ? stream.id() : default_streams[resolve_device(stream.device_index())];
}

c10::StreamId exchange_stream(DeviceIndex device, c10::StreamId id) {
  auto before = thread_streams[device];
  thread_streams[device] = id;
  return before;
}

c10::Stream stream_of(DeviceIndex device, c10::StreamId id) {
  return c10::Stream(c10::Stream::UNSAFE, c10::Device(c10::DeviceType::CUDA, device), id);
}

c10::StreamId next_pool_stream(DeviceIndex device, int priority) {
  check_index(device);
  priority = priority > 0 ? 0 : priority < greatest_priority ? greatest_priority : priority;
  auto& all = stream_pools();
  halstream_id stream = 0;
  uint64_t handle = 0;
  {
    std::lock_guard<std::mutex> lock(all.mutex);
    auto& pool = all.pools[{device, priority}];
    if (pool.streams.size() >= streams_per_pool) return pool.streams[pool.next++ % streams_per_pool];
    check(core->stream_new(device, priority, HALSTREAM_STREAM_NON_BLOCKING, &stream));
    check(core->stream_handle(stream, &handle));
    pool.streams.push_back(stream);
    all.by_handle[handle] = stream;
  }
  mark_used(device);
  trace([&](auto& to) { to.trace_gpu_stream_creation(traced_device, static_cast<uintptr_t>(handle)); });
  return stream;
}

c10::StreamId stream_of_handle(DeviceIndex device, uint64_t handle) {
  if (handle == 0) return 0;
  uint64_t own = 0;
  check(core->stream_handle(default_stream(device), &own));
  if (own == handle) return 0;
  auto& all = stream_pools();
  std::lock_guard<std::mutex> lock(all.mutex);
  auto found = all.by_handle.find(handle);
  if (found != all.by_handle.end()) return found->second;
  // A stream that the program made with halstream itself: its id may have been given instead of a handle.
  int32_t of = 0;
  TORCH_CHECK(
      core->stream_device(static_cast<halstream_id>(handle), &of) == HALSTREAM_OK && of == device,
      "no stream of cuda:", static_cast<int>(device), " has the handle ", handle);
  return static_cast<c10::StreamId>(handle);
}

uint64_t stream_handle(DeviceIndex device, c10::StreamId id) {
  if (id == 0) return 0;
  uint64_t handle = 0;
  check(core->stream_handle(id, &handle));
  (void)device;
  return handle;
}

}  // namespace halstream_torch
