// What compiled extensions call of torch's libraries for CUDA: current devices and streams, and checks of errors. An
// extension that is compiled under this module is linked to it in front of libc10_cuda and libtorch_cuda, whose functions of
// the same names know nothing of these streams. The types are torch's as far as a caller sees them.
#include "guard.h"
#include "python_functions.h"
#include "streams.h"
#include "used_devices.h"
#include "visible.h"

#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <c10/util/Exception.h>

#include <dlfcn.h>

#include <array>
#include <mutex>
#include <ostream>
#include <string>

namespace halstream_torch {

namespace {

constexpr int invalid_device = 101;  // cudaErrorInvalidDevice
// Kernels that failed, which lost the device: the runtime knows which, and where.
constexpr int first_of_kernels = 700, last_of_kernels = 719;
constexpr size_t size_of_properties = 2048;  // more than cudaDeviceProp has

// Functions of the CUDA runtime to which extensions are linked; null before `connect`.
struct CudaRuntime {
  const char* (*error_text)(int) = nullptr;
  int (*last_error)() = nullptr;
  int (*properties)(void*, int) = nullptr;
};
CudaRuntime cuda_runtime;

int device_for_runtime() noexcept {
  mark_used(current_device());
  return current_device();
}

int set_device_for_runtime(int device) noexcept {
  if (device < 0 || device >= device_count()) return invalid_device;
  set_device_unchecked(static_cast<DeviceIndex>(device));
  mark_used(static_cast<DeviceIndex>(device));
  return 0;
}

template <class Function>
void find_function(void* library, const char* name, Function*& found) {
  found = reinterpret_cast<Function*>(dlsym(library, name));
  TORCH_CHECK(found != nullptr, "halstream's CUDA runtime has no ", name);
}

// Lets the CUDA runtime at a path follow torch's current device; `version` is that of torch's CUDA.
PyObject* connect_cuda_runtime(PyObject*, PyObject* args) {
  const char* path = nullptr;
  int version = 0;
  if (!PyArg_ParseTuple(args, "si", &path, &version)) return nullptr;
  return guarded([&]() -> PyObject* {
    void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    TORCH_CHECK(library != nullptr, "halstream's CUDA runtime cannot be loaded: ", dlerror());
    void (*follow)(int (*)(), int (*)(int)) = nullptr;
    find_function(library, "halstream_cudart_device", follow);
    find_function(library, "cudaGetErrorString", cuda_runtime.error_text);
    find_function(library, "cudaGetLastError", cuda_runtime.last_error);
    find_function(library, version < 13 ? "cudaGetDeviceProperties_v2" : "cudaGetDeviceProperties", cuda_runtime.properties);
    follow(device_for_runtime, set_device_for_runtime);
    Py_RETURN_NONE;
  });
}

void check_cuda(int code) {
  if (code == 0 || cuda_runtime.last_error == nullptr) return;
  cuda_runtime.last_error();
  if (code >= first_of_kernels && code <= last_of_kernels) synchronize_device(current_device());
  throw c10::AcceleratorError(
      {__func__, __FILE__, static_cast<uint32_t>(__LINE__)}, code,
      std::string("CUDA error: ") + cuda_runtime.error_text(code));
}

void* properties_of(DeviceIndex device) {
  static auto* all = new std::array<std::array<char, size_of_properties>, max_devices>();
  static std::array<std::once_flag, max_devices> filled;
  auto index = resolve_device(device);
  std::call_once(filled[index], [&] { check_cuda(cuda_runtime.properties((*all)[index].data(), index)); });
  return (*all)[index].data();
}

}  // namespace

PyMethodDef extension_functions[] = {
    {"connect_cuda_runtime", connect_cuda_runtime, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace halstream_torch

#define FOR_EXTENSIONS __attribute__((visibility("default")))

struct CUstream_st;

namespace c10::cuda {

namespace own = halstream_torch;

class FOR_EXTENSIONS CUDAStream {
 public:
  explicit CUDAStream(c10::Stream stream) : stream_(stream) {}
  CUstream_st* stream() const;
  bool query() const;
  void synchronize() const;
  const c10::Stream& unwrap() const { return stream_; }

 private:
  c10::Stream stream_;
};

class FOR_EXTENSIONS CUDAErrorLogCapture {
 public:
  CUDAErrorLogCapture() noexcept;
  std::string get_error_log_suffix() noexcept;
};

CUstream_st* CUDAStream::stream() const {
  return reinterpret_cast<CUstream_st*>(own::stream_handle(stream_.device_index(), stream_.id()));
}
bool CUDAStream::query() const { return own::device_guard().queryStream(stream_); }
void CUDAStream::synchronize() const { own::device_guard().synchronizeStream(stream_); }

static CUDAStream stream_in(DeviceIndex device, c10::StreamId id) { return CUDAStream(own::stream_of(device, id)); }

FOR_EXTENSIONS CUDAStream getCurrentCUDAStream(DeviceIndex device) {
  auto index = own::resolve_device_of_stream(device);
  return stream_in(index, own::current_stream_id(index));
}
FOR_EXTENSIONS CUDAStream getDefaultCUDAStream(DeviceIndex device) {
  return stream_in(own::resolve_device_of_stream(device), 0);
}
FOR_EXTENSIONS CUDAStream getStreamFromPool(const int priority, DeviceIndex device) {
  auto index = own::resolve_device(device);
  return stream_in(index, own::next_pool_stream(index, priority));
}
FOR_EXTENSIONS CUDAStream getStreamFromPool(const bool is_urgent, DeviceIndex device) {
  return getStreamFromPool(is_urgent ? -1 : 0, device);
}
FOR_EXTENSIONS CUDAStream getStreamFromExternal(CUstream_st* handle, DeviceIndex device) {
  auto index = own::resolve_device(device);
  return stream_in(index, own::stream_of_handle(index, reinterpret_cast<uint64_t>(handle)));
}
FOR_EXTENSIONS void setCurrentCUDAStream(CUDAStream stream) {
  own::exchange_stream(stream.unwrap().device_index(), stream.unwrap().id());
}
FOR_EXTENSIONS std::ostream& operator<<(std::ostream& to, const CUDAStream& stream) { return to << stream.unwrap(); }

FOR_EXTENSIONS DeviceIndex device_count() noexcept { return own::device_count(); }
FOR_EXTENSIONS DeviceIndex device_count_ensure_non_zero() {
  own::require_device();
  return own::device_count();
}
FOR_EXTENSIONS DeviceIndex current_device() { return own::current_device(); }
FOR_EXTENSIONS void device_synchronize() { own::synchronize_device(own::current_device()); }
FOR_EXTENSIONS bool hasPrimaryContext(DeviceIndex device) { return own::is_used(device); }

FOR_EXTENSIONS int GetDeviceCount(int* count) {
  *count = own::device_count();
  return 0;
}
FOR_EXTENSIONS int GetDevice(DeviceIndex* device) {
  *device = own::current_device();
  return 0;
}
FOR_EXTENSIONS int SetDevice(DeviceIndex device, const bool) { return own::set_device_for_runtime(device); }
FOR_EXTENSIONS int MaybeSetDevice(DeviceIndex device) { return own::set_device_for_runtime(device); }
FOR_EXTENSIONS void set_device(DeviceIndex device, const bool) { own::check_cuda(own::set_device_for_runtime(device)); }
FOR_EXTENSIONS DeviceIndex ExchangeDevice(DeviceIndex device) { return own::exchange_device(device); }
FOR_EXTENSIONS DeviceIndex MaybeExchangeDevice(DeviceIndex device) { return own::exchange_device(device); }
FOR_EXTENSIONS void SetTargetDevice() {}

CUDAErrorLogCapture::CUDAErrorLogCapture() noexcept = default;
std::string CUDAErrorLogCapture::get_error_log_suffix() noexcept { return ""; }

// With and without the last parameter, which older torch does not have.
FOR_EXTENSIONS void c10_cuda_check_implementation(
    const int32_t code, const char*, const char*, const uint32_t, const bool, CUDAErrorLogCapture*) {
  own::check_cuda(code);
}
FOR_EXTENSIONS void c10_cuda_check_implementation(
    const int32_t code, const char*, const char*, const uint32_t, const bool) {
  own::check_cuda(code);
}

}  // namespace c10::cuda

namespace at::cuda {

FOR_EXTENSIONS void* getCurrentDeviceProperties() {
  return halstream_torch::properties_of(halstream_torch::current_device());
}
FOR_EXTENSIONS void* getDeviceProperties(c10::DeviceIndex device) { return halstream_torch::properties_of(device); }
FOR_EXTENSIONS int warp_size() { return 32; }

}  // namespace at::cuda

#undef FOR_EXTENSIONS
