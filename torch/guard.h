// What torch asks of a device type: devices, streams and events.
#pragma once

namespace c10::impl {
struct DeviceGuardImplInterface;
}

namespace halstream_torch {

// The one object that answers for the device type CUDA; never destroyed.
const c10::impl::DeviceGuardImplInterface& device_guard();

// Puts `device_guard` where torch looks for CUDA's. Not undone: tensors may exist until the process ends.
void install_device_guard();

}  // namespace halstream_torch
