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

// While on, a record on this thread only makes the event of torch's object where there is none: the caller records it,
// as torch.Event cannot say that an event is external.
void let_others_record(bool on) noexcept;

}  // namespace halstream_torch
