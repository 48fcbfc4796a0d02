#include "guard.h"

#include "allocator.h"
#include "gpu_trace.h"
#include "private_pools.h"
#include "streams.h"

#include <c10/core/impl/DeviceGuardImplInterface.h>

namespace halstream_torch {

namespace {

using c10::Device;
using c10::DeviceType;
using c10::Stream;

halstream_id event_id(void* event) { return reinterpret_cast<halstream_id>(event); }

uintptr_t handle_of(const Stream& stream) { return stream_handle(stream.device_index(), stream.id()); }

// Methods without `override` do not exist in the oldest torch that this module supports.
thread_local bool records_elsewhere = false;

class DeviceGuard final : public c10::impl::DeviceGuardImplInterface {
 public:
  DeviceType type() const override { return DeviceType::CUDA; }

  Device exchangeDevice(Device device) const override {
    auto before = device.index() < 0 ? current_device() : exchange_device(device.index());
    return Device(DeviceType::CUDA, before);
  }
  Device getDevice() const override { return Device(DeviceType::CUDA, current_device()); }
  void setDevice(Device device) const override {
    if (device.index() >= 0) exchange_device(device.index());
  }
  void uncheckedSetDevice(Device device) const noexcept override { set_device_unchecked(device.index()); }
  c10::DeviceIndex deviceCount() const noexcept override { return device_count(); }

  Stream getStream(Device device) const override {
    auto index = resolve_device_of_stream(device.index());
    return stream_of(index, current_stream_id(index));
  }
  Stream getDefaultStream(Device device) const override {
    return stream_of(resolve_device_of_stream(device.index()), 0);
  }
  Stream getStreamFromGlobalPool(Device device, bool high_priority) const override {
    return getNewStream(device, high_priority ? -1 : 0);
  }
  Stream getNewStream(Device device, int priority) const override {
    auto index = resolve_device(device.index());
    return stream_of(index, next_pool_stream(index, priority));
  }
  Stream exchangeStream(Stream stream) const override {
    auto index = resolve_device(stream.device_index());
    return stream_of(index, exchange_stream(index, stream.id()));
  }
  void* getStreamNativeHandle(const Stream stream) const {
    return reinterpret_cast<void*>(stream_handle(stream.device_index(), stream.id()));
  }
  bool queryStream(const Stream& stream) const override {
    int done = 0;
    if (finished()) return true;
    check(core->stream_query(runtime_stream(stream), &done));
    return done != 0;
  }
  bool isStreamCapturing(const Stream& stream) const { return capture_of(runtime_stream(stream)) != 0; }
  void synchronizeStream(const Stream& stream) const override {
    trace([&](auto& to) { to.trace_gpu_stream_synchronization(traced_device, handle_of(stream)); });
    synchronize_stream(runtime_stream(stream));
  }
  void synchronizeDevice(const c10::DeviceIndex index) const override {
    trace([&](auto& to) { to.trace_gpu_device_synchronization(traced_device); });
    synchronize_device(resolve_device(index));
  }

  void record(void** event, const Stream& stream, const c10::DeviceIndex index, const c10::EventFlag flag)
      const override {
    TORCH_CHECK(
        index == -1 || index == stream.device_index(), "Event device index ", static_cast<int>(index),
        " does not match recording stream's device index ", static_cast<int>(stream.device_index()), ".");
    if (*event == nullptr) {
      halstream_id id = 0;
      // BACKEND_DEFAULT is how torch.Event(enable_timing=True) arrives here.
      uint32_t flags = flag == c10::EventFlag::BACKEND_DEFAULT ? HALSTREAM_EVENT_TIMING : 0;
      check(core->event_new(resolve_device(stream.device_index()), flags, &id));
      *event = reinterpret_cast<void*>(id);
      trace([&](auto& to) { to.trace_gpu_event_creation(traced_device, address_of(*event)); });
    }
    if (records_elsewhere) return;
    check(core->event_record(event_id(*event), runtime_stream(stream)));
    trace([&](auto& to) { to.trace_gpu_event_record(traced_device, address_of(*event), handle_of(stream)); });
  }
  void block(void* event, const Stream& stream) const override {
    if (event == nullptr) return;
    check(core->stream_wait_event(runtime_stream(stream), event_id(event)));
    trace([&](auto& to) { to.trace_gpu_event_wait(traced_device, address_of(event), handle_of(stream)); });
  }
  bool queryEvent(void* event) const override {
    if (event == nullptr) return true;
    int done = 0;
    if (finished()) return true;
    check(core->event_query(event_id(event), &done));
    return done != 0;
  }
  void synchronizeEvent(void* event) const override {
    if (event == nullptr) return;
    trace([&](auto& to) { to.trace_gpu_event_synchronization(traced_device, address_of(event)); });
    synchronize_event(event_id(event));
  }
  void destroyEvent(void* event, const c10::DeviceIndex) const noexcept override {
    if (event == nullptr || finished()) return;
    trace([&](auto& to) { to.trace_gpu_event_deletion(traced_device, address_of(event)); });
    core->event_close(event_id(event));
  }
  double elapsedTime(void* start, void* end, const c10::DeviceIndex) const override {
    double milliseconds = 0;
    check(core->event_elapsed(event_id(start), event_id(end), &milliseconds));
    return milliseconds;
  }

  void recordDataPtrOnStream(const c10::DataPtr& data, const Stream& stream) const override {
    record_stream(data, stream);
  }
};

}  // namespace

const c10::impl::DeviceGuardImplInterface& device_guard() {
  static auto* guard = new DeviceGuard();
  return *guard;
}

void install_device_guard() {
  c10::impl::device_guard_impl_registry[static_cast<size_t>(DeviceType::CUDA)].store(&device_guard());
}

void let_others_record(bool on) noexcept { records_elsewhere = on; }

}  // namespace halstream_torch
