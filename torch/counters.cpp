#include "counters.h"

#include "gpu_trace.h"
#include "streams.h"

#include <c10/util/Exception.h>

#include <mutex>

namespace halstream_torch {

namespace {

std::mutex& waits_mutex() {
  static auto* mutex = new std::mutex();
  return *mutex;
}
std::map<std::string, uint64_t>& waits() {
  static auto* all = new std::map<std::string, uint64_t>();
  return *all;
}
std::atomic<int> debug_mode{0};

}  // namespace

Counters& counters() {
  static auto* all = new Counters();
  return *all;
}

void host_waits(const std::string& name, c10::DeviceIndex device) {
  {
    std::lock_guard<std::mutex> lock(waits_mutex());
    waits()[name]++;
  }
  auto mode = debug_mode.load(std::memory_order_relaxed);
  if (mode == 1) TORCH_WARN("called a synchronizing CUDA operation");
  TORCH_CHECK(mode != 2, "called a synchronizing CUDA operation");
  auto handle = stream_handle(device, current_stream_id(device));
  trace([&](auto& to) { to.trace_gpu_stream_synchronization(traced_device, handle); });
}

std::map<std::string, uint64_t> host_waits_by_name() {
  std::lock_guard<std::mutex> lock(waits_mutex());
  return waits();
}

void reset_counters() {
  auto& all = counters();
  all.operators = 0;
  all.metadata_hits = 0;
  all.metadata_misses = 0;
  std::lock_guard<std::mutex> lock(waits_mutex());
  waits().clear();
}

void set_sync_debug_mode(int mode) { debug_mode = mode; }
int sync_debug_mode() { return debug_mode; }

}  // namespace halstream_torch
