#include "segments.h"

#include "streams.h"

#include <array>
#include <mutex>

namespace halstream_torch {

namespace {

using c10::CachingAllocator::Stat;
using c10::CachingAllocator::StatType;

// What the runtime had counted when torch's totals were reset.
struct Totals {
  uint64_t generation = 0;  // a new runtime counts from 0
  halstream_segments pools[3] = {};
};

std::mutex& totals_mutex() {
  static auto* mutex = new std::mutex();
  return *mutex;
}
Totals& totals_of(c10::DeviceIndex device) {
  static auto* all = new std::array<Totals, max_devices>();
  auto& totals = (*all)[static_cast<size_t>(device)];
  if (totals.generation != core->generation()) totals = {core->generation(), {}};
  return totals;
}

void fill(Stat& stat, const halstream_gauge& now, const halstream_gauge& then) {
  stat.current = static_cast<int64_t>(now.current);
  stat.peak = static_cast<int64_t>(now.peak);
  stat.allocated = static_cast<int64_t>(now.added - then.added);
  stat.freed = static_cast<int64_t>((now.added - now.current) - (then.added - then.current));
}

}  // namespace

void fill_segment_stats(
    c10::DeviceIndex device, const halstream_memory& memory, c10::CachingDeviceAllocator::DeviceStats& stats) {
  // torch's order of the pools is the runtime's.
  static_assert(static_cast<int>(StatType::SMALL_POOL) == 1 && static_cast<int>(StatType::LARGE_POOL) == 2);
  std::lock_guard<std::mutex> lock(totals_mutex());
  const auto& then = totals_of(device);
  for (size_t i = 0; i < stats.segment.size(); i++) {
    fill(stats.segment[i], memory.pools[i].segments, then.pools[i].segments);
    fill(stats.reserved_bytes[i], memory.pools[i].bytes, then.pools[i].bytes);
    fill(stats.inactive_split[i], memory.pools[i].split, then.pools[i].split);
    fill(stats.inactive_split_bytes[i], memory.pools[i].split_bytes, then.pools[i].split_bytes);
  }
  // Memory of the device that is in no pool is reserved, too.
  auto& all = stats.reserved_bytes[static_cast<size_t>(StatType::AGGREGATE)];
  all.allocated += static_cast<int64_t>(memory.reserved) - all.current;
  all.current = static_cast<int64_t>(memory.reserved);
  all.peak = static_cast<int64_t>(memory.reserved_peak);
}

void reset_segment_stats(c10::DeviceIndex device, const halstream_memory& memory) {
  std::lock_guard<std::mutex> lock(totals_mutex());
  std::copy(std::begin(memory.pools), std::end(memory.pools), std::begin(totals_of(device).pools));
}

}  // namespace halstream_torch
