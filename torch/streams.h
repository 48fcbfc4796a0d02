// The current device and the current streams of each thread, and the pool from which torch takes streams.
#pragma once

#include "core.h"
#include "visible.h"

#include <c10/core/Device.h>
#include <c10/core/Stream.h>

namespace halstream_torch {

constexpr int max_devices = 64;

// Reads the number of devices and their default streams from the runtime. Called once by `install`.
void prepare_streams();

DeviceIndex current_device() noexcept;
// Makes `device` the thread's current one and returns the one before. Raises for an index out of range.
DeviceIndex exchange_device(DeviceIndex device);
void set_device_unchecked(DeviceIndex device) noexcept;
// `index` itself, or the current device for a negative one.
DeviceIndex resolve_device(DeviceIndex index);
// As `resolve_device`, with torch's text of a question for a stream.
DeviceIndex resolve_device_of_stream(DeviceIndex index);

// torch's id of a stream is 0 for a device's default stream, else the runtime's id.
halstream_id runtime_stream(const c10::Stream& stream);
halstream_id default_stream(DeviceIndex device);
halstream_id current_stream(DeviceIndex device);
c10::StreamId current_stream_id(DeviceIndex device);
// Makes the stream the thread's current one on the device and returns torch's id of the one before.
c10::StreamId exchange_stream(DeviceIndex device, c10::StreamId id);
c10::Stream stream_of(DeviceIndex device, c10::StreamId id);

// The next of the 32 streams that a device has for a priority: torch creates no stream for each object.
c10::StreamId next_pool_stream(DeviceIndex device, int priority);
// torch's id of the stream whose native handle `handle` is; 0 is the default stream.
c10::StreamId stream_of_handle(DeviceIndex device, uint64_t handle);
uint64_t stream_handle(DeviceIndex device, c10::StreamId id);

// Switches the thread's current device for a scope.
class DeviceScope {
 public:
  explicit DeviceScope(DeviceIndex device) : before_(current_device()) { set_device_unchecked(device); }
  ~DeviceScope() { set_device_unchecked(before_); }
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;

 private:
  DeviceIndex before_;
};

}  // namespace halstream_torch
