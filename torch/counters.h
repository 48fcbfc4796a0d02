// How often operators ran, how often their metadata was remembered, and what made the host wait.
#pragma once

#include <c10/core/Device.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <string>

namespace halstream_torch {

struct Counters {
  std::atomic<uint64_t> operators{0};
  std::atomic<uint64_t> metadata_hits{0};
  std::atomic<uint64_t> metadata_misses{0};
};

Counters& counters();
// Notes that the host waits for the device's current stream in an operator, tells torch.cuda._gpu_trace, and warns or
// raises as `torch.cuda.set_sync_debug_mode` says.
void host_waits(const std::string& name, c10::DeviceIndex device);
std::map<std::string, uint64_t> host_waits_by_name();
void reset_counters();
void set_sync_debug_mode(int mode);  // 0 nothing, 1 warn, 2 raise
int sync_debug_mode();

}  // namespace halstream_torch
