#include "device_memory.h"

#include "visible.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace halstream_torch {

using c10::CachingAllocator::StatType;

namespace {

std::string megabytes(uint64_t bytes) {
  char text[32];
  if (bytes >= (1ull << 30)) {
    snprintf(text, sizeof text, "%.2f GiB", static_cast<double>(bytes) / (1ull << 30));
  } else {
    snprintf(text, sizeof text, "%.2f MiB", static_cast<double>(bytes) / (1ull << 20));
  }
  return text;
}

// Called when memory is not there; never destroyed.
std::vector<OutOfMemoryObserver>& observers() {
  static auto* all = new std::vector<OutOfMemoryObserver>();
  return *all;
}

}  // namespace

std::array<DeviceMemory, max_devices>& memory() {
  static auto* all = new std::array<DeviceMemory, max_devices>();
  return *all;
}

void out_of_memory(size_t bytes, DeviceIndex device) {
  uint64_t available = 0, total = 0;
  core->device_memory(device, &available, &total);
  int64_t allocated = 0;
  {
    auto& of = memory()[device];
    std::lock_guard<std::mutex> lock(of.mutex);
    of.stats.num_ooms++;
    allocated = of.stats.allocated_bytes[static_cast<size_t>(StatType::AGGREGATE)].current;
  }
  for (const auto& observer : observers()) observer(device, bytes, total, available);
  TORCH_CHECK_WITH(
      OutOfMemoryError, false, "CUDA out of memory. Tried to allocate ", megabytes(bytes), ". GPU ",
      static_cast<int>(device), " has a total capacity of ", megabytes(total), " of which ", megabytes(available),
      " is free. Of the allocated memory ", megabytes(static_cast<uint64_t>(allocated)), " is allocated by PyTorch.");
}

bool over_fraction(size_t bytes, DeviceIndex device) {
  auto& of = memory()[device];
  double allocated = 0;
  {
    std::lock_guard<std::mutex> lock(of.mutex);
    if (of.fraction >= 1) return false;
    allocated = static_cast<double>(of.stats.allocated_bytes[static_cast<size_t>(StatType::AGGREGATE)].current);
  }
  uint64_t available = 0, total = 0;
  check(core->device_memory(device, &available, &total));
  std::lock_guard<std::mutex> lock(of.mutex);
  return allocated + static_cast<double>(bytes) > of.fraction * static_cast<double>(total);
}

void set_memory_fraction(DeviceIndex device, double fraction) {
  TORCH_CHECK(fraction >= 0 && fraction <= 1, "invalid fraction: ", fraction, ". Please set within [0, 1].");
  auto& of = memory()[resolve_device(device)];
  std::lock_guard<std::mutex> lock(of.mutex);
  of.fraction = fraction;
}

double memory_fraction(DeviceIndex device) {
  auto& of = memory()[resolve_device(device)];
  std::lock_guard<std::mutex> lock(of.mutex);
  return of.fraction;
}

void observe_out_of_memory(OutOfMemoryObserver observer) { observers().push_back(std::move(observer)); }

void use_memory_fraction_of_environment() {
  static constexpr std::string_view key = "per_process_memory_fraction:";
  for (const char* name : {"PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"}) {
    const char* value = std::getenv(name);
    const char* found = value != nullptr ? std::strstr(value, key.data()) : nullptr;
    if (found == nullptr) continue;
    double fraction = std::strtod(found + key.size(), nullptr);
    TORCH_CHECK(
        fraction >= 0 && fraction <= 1, "per_process_memory_fraction is invalid, got ", fraction,
        ": please set it within [0, 1]");
    for (int i = 0; i < runtime_devices(); i++) set_memory_fraction(static_cast<DeviceIndex>(i), fraction);
    return;
  }
}

}  // namespace halstream_torch
