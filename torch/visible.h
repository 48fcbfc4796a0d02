// Which of the runtime's devices the program sees: those that CUDA_VISIBLE_DEVICES leaves, as CUDA's driver reads it.
#pragma once

#include <c10/core/Device.h>

#include <string>
#include <vector>

namespace halstream_torch {

using c10::DeviceIndex;

// How many devices the runtime has, visible or not; 0 before `set_runtime_devices`.
DeviceIndex runtime_devices() noexcept;
void set_runtime_devices(DeviceIndex count) noexcept;

// How many of them the program sees.
DeviceIndex device_count() noexcept;

// The ordinals that CUDA_VISIBLE_DEVICES leaves, in its order; all of them where it is not set. It is read at each
// call until `choose_devices`.
std::vector<int> visible_ordinals();

// CUDA_VISIBLE_DEVICES is not read again, as after cuInit. Does nothing the second time.
void choose_devices();

// As `choose_devices`; raises torch's error where no device is visible.
void require_device();

// The uuids of the runtime's devices, which CUDA_VISIBLE_DEVICES may name instead of ordinals.
void set_uuids(std::vector<std::string> uuids);

}  // namespace halstream_torch
