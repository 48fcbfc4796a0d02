#include "profiling.h"

#include "streams.h"

#include "torch/csrc/profiler/stubs/base.h"

#include <chrono>

namespace halstream_torch {

namespace {

using torch::profiler::impl::ProfilerVoidEventStub;

struct TimedEvent {
  halstream_id id = 0;
  ~TimedEvent() {
    if (id != 0 && !finished()) core->event_close(id);
  }
};

halstream_id id_of(const ProfilerVoidEventStub* event) { return static_cast<TimedEvent*>(event->get())->id; }

class Events final : public torch::profiler::impl::ProfilerStubs {
 public:
  void record(c10::DeviceIndex* device, ProfilerVoidEventStub* event, int64_t* cpu_ns) const override {
    auto current = current_device();
    if (device != nullptr) *device = current;
    auto made = std::make_shared<TimedEvent>();
    check(core->event_record_new(current_stream(current), HALSTREAM_EVENT_TIMING, &made->id));
    *event = std::move(made);
    if (cpu_ns != nullptr) {
      *cpu_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(
                    std::chrono::system_clock::now().time_since_epoch())
                    .count();
    }
  }
  float elapsed(const ProfilerVoidEventStub* first, const ProfilerVoidEventStub* second) const override {
    synchronize_event(id_of(first));
    synchronize_event(id_of(second));
    double milliseconds = 0;
    check(core->event_elapsed(id_of(first), id_of(second), &milliseconds));
    return static_cast<float>(milliseconds * 1000);
  }
  void mark(const char*) const override {}
  void rangePush(const char*) const override {}
  void rangePop() const override {}
  bool enabled() const override { return true; }
  void onEachDevice(std::function<void(int)> body) const override {
    for (DeviceIndex i = 0; i < device_count(); i++) {
      DeviceScope scope(i);
      body(i);
    }
  }
  void synchronize() const override { synchronize_device(current_device()); }
};

}  // namespace

void install_profiler_events() {
  static auto* events = new Events();
  torch::profiler::impl::registerCUDAMethods(events);
}

}  // namespace halstream_torch
