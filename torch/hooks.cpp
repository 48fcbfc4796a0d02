#include "hooks.h"

#include "allocator.h"
#include "generator.h"
#include "gpu_trace.h"
#include "pinned.h"
#include "used_devices.h"
#include "visible.h"

#include <ATen/detail/CUDAHooksInterface.h>

#include <cstring>

namespace halstream_torch {

namespace {

class Hooks final : public at::CUDAHooksInterface {
 public:
  Hooks() = default;
  explicit Hooks(at::CUDAHooksArgs) {}

  void init() const override { require_device(); }
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return device_count() > 0; }
  bool hasCUDA() const override { return device_count() > 0; }
  bool hasCUDART() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex device) const override { return is_used(resolve_device(device)); }

  c10::DeviceIndex deviceCount() const override { return device_count(); }
  int getNumGPUs() const override { return device_count(); }
  c10::DeviceIndex current_device() const override { return halstream_torch::current_device(); }
  c10::DeviceIndex getCurrentDevice() const override { return halstream_torch::current_device(); }
  void setCurrentDevice(c10::DeviceIndex index) const override { exchange_device(index); }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex index) const override {
    return index < 0 ? -1 : exchange_device(index);
  }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex index) const override { return exchangeDevice(index); }
  void deviceSynchronize(c10::DeviceIndex index) const override {
    trace([&](auto& to) { to.trace_gpu_device_synchronization(traced_device); });
    mark_used(resolve_device(index));
    synchronize_device(resolve_device(index));
  }

  bool isPinnedPtr(const void* address) const override { return is_pinned(address); }
  c10::Allocator* getPinnedMemoryAllocator() const override { return &pinned_allocator(); }
  c10::Allocator* getCUDADeviceAllocator() const override { return &device_allocator(); }
  c10::Device getDeviceFromPtr(void* address) const override {
    int kind = 0;
    int32_t device = 0;
    check(core->memory_kind(reinterpret_cast<uint64_t>(address), &kind, &device));
    TORCH_CHECK(kind == 2 || kind == 3, "The specified pointer resides on host memory and is not registered with any CUDA device.");
    return {c10::DeviceType::CUDA, static_cast<c10::DeviceIndex>(device)};
  }

  const at::Generator& getDefaultGenerator(c10::DeviceIndex index) const override { return default_generator(index); }
  at::Generator getNewGenerator(c10::DeviceIndex index) const override { return new_generator(index); }

  // No CUDA library stands behind these: torch then takes its own kernels instead of cuDNN's or MAGMA's.
  long versionCuDNN() const override { return 0; }
  long versionRuntimeCuDNN() const override { return 0; }
  long versionCUDART() const override { return 0; }
  std::string showConfig() const override { return "CUDA device type served by halstream on the CPU\n"; }
};

}  // namespace

void install_hooks() {
  // torch makes its hooks object at the first question and keeps it for ever, so an object that exists already
  // (`torch.cuda.is_available()` was called) has to change its class. Neither class has members.
  static_assert(sizeof(Hooks) == sizeof(void*), "the hooks have no state that could be lost");
  static const auto* ours = new Hooks();
  static const c10::Registerer<std::string, std::unique_ptr<at::CUDAHooksInterface>, at::CUDAHooksArgs> registered(
      "CUDAHooks", c10::REGISTRY_PREFERRED, at::CUDAHooksRegistry(),
      c10::Registerer<std::string, std::unique_ptr<at::CUDAHooksInterface>, at::CUDAHooksArgs>::DefaultCreator<Hooks>);
  const auto& theirs = at::detail::getCUDAHooks();
  if (dynamic_cast<const Hooks*>(&theirs) == nullptr) {
    std::memcpy(const_cast<void*>(static_cast<const void*>(&theirs)), static_cast<const void*>(ours), sizeof(void*));
  }
}

}  // namespace halstream_torch
