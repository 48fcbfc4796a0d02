// Functions with the names, arguments and results of those in torch._C, which Python sets in their place.
#include "allocator.h"
#include "counters.h"
#include "device_memory.h"
#include "gpu_trace.h"
#include "pinned.h"
#include "python_functions.h"
#include "used_devices.h"

#include <c10/util/Exception.h>

namespace halstream_torch {

namespace {

constexpr int cuda_type = static_cast<int>(c10::DeviceType::CUDA);

// Parses the one integer that many of these functions take.
bool parse(PyObject* value, DeviceIndex& device) {
  auto number = PyLong_AsLong(value);
  if (number == -1 && PyErr_Occurred()) return false;
  device = static_cast<DeviceIndex>(number);
  return true;
}

PyObject* get_device(PyObject*, PyObject*) { return PyLong_FromLong(current_device()); }
PyObject* get_device_count(PyObject*, PyObject*) { return PyLong_FromLong(device_count()); }

PyObject* set_device(PyObject*, PyObject* value) {
  DeviceIndex device = 0;
  if (!parse(value, device)) return nullptr;
  return guarded([&]() -> PyObject* {
    exchange_device(device);
    mark_used(device);
    Py_RETURN_NONE;
  });
}

PyObject* has_primary_context(PyObject*, PyObject* value) {
  DeviceIndex device = 0;
  if (!parse(value, device)) return nullptr;
  return guarded([&] { return PyBool_FromLong(is_used(resolve_device(device))); });
}

PyObject* exchange(PyObject*, PyObject* value) {
  DeviceIndex device = 0;
  if (!parse(value, device)) return nullptr;
  return guarded([&] { return PyLong_FromLong(device < 0 ? -1 : exchange_device(device)); });
}

// A function of its own: builtin functions of one C function are equal, and Dynamo tells these two apart.
PyObject* maybe_exchange(PyObject* self, PyObject* value) { return exchange(self, value); }

PyObject* stream_tuple(DeviceIndex device, c10::StreamId id) {
  return Py_BuildValue("(Lii)", static_cast<long long>(id), static_cast<int>(device), cuda_type);
}

PyObject* get_current_stream(PyObject*, PyObject* value) {
  DeviceIndex device = 0;
  if (!parse(value, device)) return nullptr;
  return guarded([&] {
    auto index = resolve_device(device);
    return stream_tuple(index, current_stream_id(index));
  });
}

PyObject* get_default_stream(PyObject*, PyObject* value) {
  DeviceIndex device = 0;
  if (!parse(value, device)) return nullptr;
  return guarded([&] { return stream_tuple(resolve_device(device), 0); });
}

PyObject* get_current_raw_stream(PyObject*, PyObject* value) {
  DeviceIndex device = 0;
  if (!parse(value, device)) return nullptr;
  return guarded([&] {
    auto index = resolve_device(device);
    return PyLong_FromUnsignedLongLong(stream_handle(index, current_stream_id(index)));
  });
}

PyObject* get_stream_from_external(PyObject*, PyObject* args) {
  unsigned long long handle = 0;
  int device = 0;
  if (!PyArg_ParseTuple(args, "Ki", &handle, &device)) return nullptr;
  return guarded([&] {
    auto index = resolve_device(static_cast<DeviceIndex>(device));
    return stream_tuple(index, stream_of_handle(index, handle));
  });
}

PyObject* set_stream(PyObject*, PyObject* args, PyObject* keywords) {
  long long id = 0, device = 0, type = 0;
  static const char* names[] = {"stream_id", "device_index", "device_type", nullptr};
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "|LLL", const_cast<char**>(names), &id, &device, &type)) {
    return nullptr;
  }
  return guarded([&]() -> PyObject* {
    auto index = resolve_device(static_cast<DeviceIndex>(device));
    exchange_device(index);
    exchange_stream(index, id);
    Py_RETURN_NONE;
  });
}

PyObject* synchronize(PyObject*, PyObject*) {
  return guarded([&]() -> PyObject* {
    trace([&](auto& to) { to.trace_gpu_device_synchronization(traced_device); });
    mark_used(current_device());
    synchronize_device(current_device());
    Py_RETURN_NONE;
  });
}

PyObject* never(PyObject*, PyObject*) { Py_RETURN_FALSE; }
PyObject* nothing(PyObject*, PyObject*) { Py_RETURN_NONE; }

PyObject* stat_dict(const c10::CachingAllocator::Stat& stat) {
  return Py_BuildValue(
      "{s:L,s:L,s:L,s:L}", "current", static_cast<long long>(stat.current), "peak", static_cast<long long>(stat.peak),
      "allocated", static_cast<long long>(stat.allocated), "freed", static_cast<long long>(stat.freed));
}

PyObject* duration_dict(const c10::CachingAllocator::DurationStat& stat) {
  return Py_BuildValue(
      "{s:L,s:L,s:L,s:L,s:d}", "total", static_cast<long long>(stat.total), "max", static_cast<long long>(stat.max),
      "min", static_cast<long long>(stat.min), "count", static_cast<long long>(stat.count), "avg",
      stat.count == 0 ? 0. : static_cast<double>(stat.total) / static_cast<double>(stat.count));
}

PyObject* host_memory_stats(PyObject*, PyObject*) {
  return guarded([&] {
    auto all = pinned_figures();
    return Py_BuildValue(
        "{s:N,s:N,s:N,s:N,s:N,s:N,s:L,s:L}", "allocations", stat_dict(all.allocations), "allocated_bytes",
        stat_dict(all.allocated_bytes), "active_requests", stat_dict(all.requests), "active_bytes",
        stat_dict(all.active_bytes), "host_alloc_time", duration_dict(all.allocation_time), "host_free_time",
        duration_dict(all.free_time), "num_host_alloc", static_cast<long long>(all.allocated), "num_host_free",
        static_cast<long long>(all.freed));
  });
}

template <bool accumulated>
PyObject* reset_host(PyObject*, PyObject*) {
  reset_pinned_figures(accumulated, !accumulated);
  Py_RETURN_NONE;
}

PyObject* empty_host_cache(PyObject*, PyObject*) {
  return guarded([&]() -> PyObject* {
    empty_pinned_cache();
    Py_RETURN_NONE;
  });
}

// Kept until the process ends, as torch keeps it.
PyObject* attach_observer(PyObject*, PyObject* observer) {
  Py_INCREF(observer);
  observe_out_of_memory([observer](DeviceIndex device, size_t bytes, uint64_t total, uint64_t available) {
    auto state = PyGILState_Ensure();
    PyObject* result = PyObject_CallFunction(
        observer, "iKKK", static_cast<int>(device), static_cast<unsigned long long>(bytes),
        static_cast<unsigned long long>(total), static_cast<unsigned long long>(available));
    if (result == nullptr) PyErr_WriteUnraisable(observer);
    Py_XDECREF(result);
    PyGILState_Release(state);
  });
  Py_RETURN_NONE;
}

PyObject* enable_cache(PyObject*, PyObject* on) {
  int value = PyObject_IsTrue(on);
  if (value < 0) return nullptr;
  set_counting_raw(value != 0);
  Py_RETURN_NONE;
}

PyObject* cache_enabled(PyObject*, PyObject*) { return PyBool_FromLong(counts_raw()); }

PyObject* stat_array(const c10::CachingAllocator::StatArray& array) {
  return Py_BuildValue(
      "{s:N,s:N,s:N}", "all", stat_dict(array[0]), "small_pool", stat_dict(array[1]), "large_pool",
      stat_dict(array[2]));
}

PyObject* memory_stats(PyObject*, PyObject* value) {
  DeviceIndex device = 0;
  if (!parse(value, device)) return nullptr;
  return guarded([&] {
    auto stats = device_allocator().getDeviceStats(device);
    return Py_BuildValue(
        "{s:L,s:L,s:L,s:L,s:L,s:L,s:N,s:N,s:N,s:N,s:N,s:N,s:N,s:N,s:N,s:N,s:N}", "num_alloc_retries",
        static_cast<long long>(stats.num_alloc_retries), "num_ooms", static_cast<long long>(stats.num_ooms),
        "max_split_size", static_cast<long long>(stats.max_split_size), "num_sync_all_streams",
        static_cast<long long>(stats.num_sync_all_streams), "num_device_alloc",
        static_cast<long long>(stats.num_device_alloc), "num_device_free",
        static_cast<long long>(stats.num_device_free), "allocation", stat_array(stats.allocation), "segment",
        stat_array(stats.segment), "active", stat_array(stats.active), "inactive_split",
        stat_array(stats.inactive_split), "allocated_bytes", stat_array(stats.allocated_bytes), "reserved_bytes",
        stat_array(stats.reserved_bytes), "active_bytes", stat_array(stats.active_bytes), "inactive_split_bytes",
        stat_array(stats.inactive_split_bytes), "requested_bytes", stat_array(stats.requested_bytes),
        "oversize_allocations", stat_dict(stats.oversize_allocations), "oversize_segments",
        stat_dict(stats.oversize_segments));
  });
}

PyObject* reset_accumulated(PyObject*, PyObject* value) {
  DeviceIndex device = 0;
  if (!parse(value, device)) return nullptr;
  return guarded([&]() -> PyObject* {
    device_allocator().resetAccumulatedStats(device);
    Py_RETURN_NONE;
  });
}

PyObject* reset_peak(PyObject*, PyObject* value) {
  DeviceIndex device = 0;
  if (!parse(value, device)) return nullptr;
  return guarded([&]() -> PyObject* {
    device_allocator().resetPeakStats(device);
    Py_RETURN_NONE;
  });
}

PyObject* empty_cache(PyObject*, PyObject*) {
  return guarded([&]() -> PyObject* {
    device_allocator().emptyCache({0, 0});
    Py_RETURN_NONE;
  });
}

PyObject* set_fraction(PyObject*, PyObject* args) {
  double fraction = 1;
  int device = 0;
  if (!PyArg_ParseTuple(args, "di", &fraction, &device)) return nullptr;
  return guarded([&]() -> PyObject* {
    set_memory_fraction(static_cast<DeviceIndex>(device), fraction);
    Py_RETURN_NONE;
  });
}

PyObject* get_fraction(PyObject*, PyObject* value) {
  DeviceIndex device = 0;
  if (!parse(value, device)) return nullptr;
  return guarded([&] { return PyFloat_FromDouble(memory_fraction(device)); });
}

PyObject* get_allocator_backend(PyObject*, PyObject*) { return PyUnicode_FromString(allocator_backend()); }

PyObject* raw_alloc(PyObject*, PyObject* args) {
  unsigned long long bytes = 0, handle = 0;
  if (!PyArg_ParseTuple(args, "KK", &bytes, &handle)) return nullptr;
  return guarded([&] {
    auto device = current_device();
    auto stream = runtime_stream(stream_of(device, stream_of_handle(device, handle)));
    return PyLong_FromVoidPtr(raw_allocate(bytes, device, stream));
  });
}

PyObject* raw_delete(PyObject*, PyObject* address) {
  auto* pointer = PyLong_AsVoidPtr(address);
  if (PyErr_Occurred()) return nullptr;
  return guarded([&]() -> PyObject* {
    raw_free(pointer);
    Py_RETURN_NONE;
  });
}

PyObject* set_debug_mode(PyObject*, PyObject* value) {
  auto mode = PyLong_AsLong(value);
  if (PyErr_Occurred()) return nullptr;
  return guarded([&]() -> PyObject* {
    TORCH_CHECK(mode >= 0 && mode <= 2, "invalid value of debug_mode, expected 0, 1 or 2");
    set_sync_debug_mode(static_cast<int>(mode));
    Py_RETURN_NONE;
  });
}

PyObject* get_debug_mode(PyObject*, PyObject*) { return PyLong_FromLong(sync_debug_mode()); }

// About as long as a GPU of 1 GHz spins for that many cycles.
PyObject* sleep_cycles(PyObject*, PyObject* value) {
  auto cycles = PyLong_AsLongLong(value);
  if (PyErr_Occurred()) return nullptr;
  return guarded([&]() -> PyObject* {
    check(core->delay(current_stream(current_device()), cycles));
    Py_RETURN_NONE;
  });
}

PyCFunction with_keywords(PyCFunctionWithKeywords function) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

}  // namespace

PyMethodDef torch_c_functions[] = {
    {"_cuda_getDevice", get_device, METH_NOARGS, nullptr},
    {"_cuda_getDeviceCount", get_device_count, METH_NOARGS, nullptr},
    {"_cuda_setDevice", set_device, METH_O, nullptr},
    {"_cuda_hasPrimaryContext", has_primary_context, METH_O, nullptr},
    {"_cuda_exchangeDevice", exchange, METH_O, nullptr},
    {"_cuda_maybeExchangeDevice", maybe_exchange, METH_O, nullptr},
    {"_cuda_getCurrentStream", get_current_stream, METH_O, nullptr},
    {"_cuda_getDefaultStream", get_default_stream, METH_O, nullptr},
    {"_cuda_getCurrentRawStream", get_current_raw_stream, METH_O, nullptr},
    {"_cuda_getStreamFromExternal", get_stream_from_external, METH_VARARGS, nullptr},
    {"_cuda_setStream", with_keywords(set_stream), METH_VARARGS | METH_KEYWORDS, nullptr},
    {"_cuda_synchronize", synchronize, METH_NOARGS, nullptr},
    {"_cuda_isCurrentStreamCapturing", never, METH_NOARGS, nullptr},
    {"_cuda_memoryStats", memory_stats, METH_O, nullptr},
    {"_cuda_resetAccumulatedMemoryStats", reset_accumulated, METH_O, nullptr},
    {"_cuda_resetPeakMemoryStats", reset_peak, METH_O, nullptr},
    {"_cuda_emptyCache", empty_cache, METH_NOARGS, nullptr},
    {"_cuda_setMemoryFraction", set_fraction, METH_VARARGS, nullptr},
    {"_cuda_getMemoryFraction", get_fraction, METH_O, nullptr},
    {"_cuda_getAllocatorBackend", get_allocator_backend, METH_NOARGS, nullptr},
    {"_cuda_cudaCachingAllocator_raw_alloc", raw_alloc, METH_VARARGS, nullptr},
    {"_cuda_cudaCachingAllocator_raw_delete", raw_delete, METH_O, nullptr},
    {"_cuda_cudaCachingAllocator_enable", enable_cache, METH_O, nullptr},
    {"_cuda_cudaCachingAllocator_is_enabled", cache_enabled, METH_NOARGS, nullptr},
    {"_cuda_attach_out_of_memory_observer", attach_observer, METH_O, nullptr},
    {"_cuda_hostMemoryStats", host_memory_stats, METH_NOARGS, nullptr},
    {"_cuda_resetAccumulatedHostMemoryStats", reset_host<true>, METH_NOARGS, nullptr},
    {"_cuda_resetPeakHostMemoryStats", reset_host<false>, METH_NOARGS, nullptr},
    {"_host_emptyCache", empty_host_cache, METH_NOARGS, nullptr},
    {"_accelerator_emptyHostCache", empty_host_cache, METH_NOARGS, nullptr},
    {"_cuda_set_sync_debug_mode", set_debug_mode, METH_O, nullptr},
    {"_cuda_get_sync_debug_mode", get_debug_mode, METH_NOARGS, nullptr},
    {"_cuda_sleep", sleep_cycles, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace halstream_torch
