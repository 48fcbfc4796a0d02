// The module `halstream_torch_device`: what the Python side calls.
#include "allocator.h"
#include "backlog.h"
#include "backward_order.h"
#include "counters.h"
#include "device_memory.h"
#include "distributed.h"
#include "forks.h"
#include "generator.h"
#include "guard.h"
#include "hooks.h"
#include "host_accesses.h"
#include "kernel_memory.h"
#include "pinned.h"
#include "profiling.h"
#include "python_functions.h"
#include "sites.h"
#include "takeover.h"
#include "tensors.h"
#include "unsupported.h"
#include "visible.h"

#include "torch/csrc/Storage.h"

#include <c10/util/Exception.h>
#include <torch/csrc/Generator.h>
#include <torch/csrc/autograd/python_variable.h>

namespace halstream_torch {

namespace {

bool is_installed = false;
size_t operator_count = 0;

PyObject* facts() {
  return Py_BuildValue(
      "{s:i,s:n,s:n}", "devices", static_cast<int>(device_count()), "operators",
      static_cast<Py_ssize_t>(operator_count), "unsupported", static_cast<Py_ssize_t>(refusals().size()));
}

PyObject* install(PyObject*, PyObject* capsule) {
  return guarded([&]() -> PyObject* {
    if (is_installed) return facts();
    auto* table = static_cast<const halstream_api*>(PyCapsule_GetPointer(capsule, HALSTREAM_API_CAPSULE));
    if (table == nullptr) return nullptr;
    TORCH_CHECK(
        table->version >= HALSTREAM_API_VERSION && table->size >= sizeof(halstream_api),
        "the installed halstream is older than this module for torch: build it again with `halstream build-torch`");
    // Meta kernels that torch has in Python.
    PyObject* meta = PyImport_ImportModule("torch._meta_registrations");
    if (meta == nullptr) return nullptr;
    Py_DECREF(meta);
    core = table;
    prepare_streams();
    prepare_generators();
    install_device_allocator();
    keep_memory_of_kernels();
    use_memory_fraction_of_environment();
    install_device_guard();
    install_hooks();
    install_reducer_timer();
    install_profiler_events();
    operator_count = install_operators();
    // After the last of Python's own functions: what is destroyed later must not call in.
    Py_AtExit([] { finish(); });
    is_installed = true;
    return facts();
  });
}

PyObject* installed(PyObject*, PyObject*) { return PyBool_FromLong(is_installed); }

PyObject* stream_new(PyObject*, PyObject* args) {
  int device = 0, priority = 0;
  if (!PyArg_ParseTuple(args, "i|i", &device, &priority)) return nullptr;
  return guarded([&] { return PyLong_FromLongLong(next_pool_stream(resolve_device(device), priority)); });
}

PyObject* stream_handle_of(PyObject*, PyObject* args) {
  int device = 0;
  long long id = 0;
  if (!PyArg_ParseTuple(args, "iL", &device, &id)) return nullptr;
  return guarded([&] { return PyLong_FromUnsignedLongLong(stream_handle(resolve_device(device), id)); });
}

PyObject* stream_priority(PyObject*, PyObject* args) {
  int device = 0;
  long long id = 0;
  if (!PyArg_ParseTuple(args, "iL", &device, &id)) return nullptr;
  return guarded([&] {
    int32_t priority = 0;
    check(core->stream_priority(runtime_stream(stream_of(resolve_device(device), id)), &priority));
    return PyLong_FromLong(priority);
  });
}

PyObject* generator_of(PyObject*, PyObject* args) {
  int device = -1;
  if (!PyArg_ParseTuple(args, "|i", &device)) return nullptr;
  return guarded([&] { return THPGenerator_Wrap(default_generator(static_cast<DeviceIndex>(device))); });
}

PyObject* mem_get_info(PyObject*, PyObject* args) {
  int device = -1;
  if (!PyArg_ParseTuple(args, "|i", &device)) return nullptr;
  return guarded([&] {
    auto [available, total] = device_allocator().getMemoryInfo(static_cast<DeviceIndex>(device));
    return Py_BuildValue(
        "(KK)", static_cast<unsigned long long>(available), static_cast<unsigned long long>(total));
  });
}

PyObject* device_name(PyObject*, PyObject* args) {
  int device = -1;
  if (!PyArg_ParseTuple(args, "|i", &device)) return nullptr;
  return guarded([&] {
    char text[256] = "";
    check(core->device_name(resolve_device(static_cast<DeviceIndex>(device)), text, sizeof text));
    return PyUnicode_FromString(text);
  });
}

PyObject* pin_kind(PyObject*, PyObject* address) {
  auto value = PyLong_AsUnsignedLongLong(address);
  if (PyErr_Occurred()) return nullptr;
  return guarded([&] {
    int kind = 0;
    int32_t device = 0;
    check(core->memory_kind(value, &kind, &device));
    return PyLong_FromLong(kind);
  });
}

PyObject* is_used_by_copies(PyObject*, PyObject* address) {
  auto value = PyLong_AsUnsignedLongLong(address);
  if (PyErr_Occurred()) return nullptr;
  return guarded([&] {
    const auto* at = reinterpret_cast<const void*>(value);
    return PyBool_FromLong(is_pinned(at) || stream_of_pageable_copy(at) != 0);
  });
}

// Reads a tensor, of no subclass, as it is: Python's own names for this run code of the program's modes, or copy the memory.
PyObject* address_of_tensor(PyObject*, PyObject* object) {
  return guarded([&] {
    TORCH_CHECK(THPVariable_Check(object), "expected a torch.Tensor");
    const auto& tensor = THPVariable_Unpack(object);
    bool in_memory = (tensor.is_cuda() || tensor.is_cpu()) && tensor.has_storage();
    return PyLong_FromUnsignedLongLong(in_memory ? reinterpret_cast<uintptr_t>(tensor.const_data_ptr()) : 0);
  });
}

PyObject* watch(PyObject*, PyObject* on) {
  int value = PyObject_IsTrue(on);
  if (value < 0) return nullptr;
  return guarded([&]() -> PyObject* {
    watch_host_accesses(value != 0);
    Py_RETURN_NONE;
  });
}

PyObject* storage_resize(PyObject*, PyObject* args) {
  PyObject* storage = nullptr;
  long long bytes = 0;
  if (!PyArg_ParseTuple(args, "OL", &storage, &bytes)) return nullptr;
  return guarded([&]() -> PyObject* {
    TORCH_CHECK(THPStorage_Check(storage), "expected a torch.UntypedStorage");
    TORCH_CHECK(bytes >= 0, "the size of a storage is not negative");
    resize_bytes(THPStorage_Unpack(storage), static_cast<size_t>(bytes));
    Py_INCREF(storage);
    return storage;
  });
}

PyObject* host_register(PyObject*, PyObject* args) {
  unsigned long long address = 0, bytes = 0;
  if (!PyArg_ParseTuple(args, "KK", &address, &bytes)) return nullptr;
  return PyBool_FromLong(register_pinned(address, bytes));
}

PyObject* host_unregister(PyObject*, PyObject* address) {
  auto value = PyLong_AsUnsignedLongLong(address);
  if (PyErr_Occurred()) return nullptr;
  return PyBool_FromLong(unregister_pinned(value));
}

PyObject* counter_values(PyObject*, PyObject*) {
  return guarded([&]() -> PyObject* {
    auto& all = counters();
    PyObject* waits = PyDict_New();
    if (waits == nullptr) return nullptr;
    for (const auto& [name, times] : host_waits_by_name()) {
      PyObject* number = PyLong_FromUnsignedLongLong(times);
      if (number == nullptr || PyDict_SetItemString(waits, name.c_str(), number) != 0) {
        Py_XDECREF(number);
        Py_DECREF(waits);
        return nullptr;
      }
      Py_DECREF(number);
    }
    return Py_BuildValue(
        "{s:K,s:L,s:L,s:K,s:K,s:N}", "operators", static_cast<unsigned long long>(all.operators), "pending",
        static_cast<long long>(pending_operators()), "running", static_cast<long long>(running_kernels()),
        "metadata_hits", static_cast<unsigned long long>(all.metadata_hits), "metadata_misses",
        static_cast<unsigned long long>(all.metadata_misses), "synchronized", waits);
  });
}

template <void step()>
PyObject* without_arguments(PyObject*, PyObject*) {
  step();
  Py_RETURN_NONE;
}

// Read and written with the GIL.
PyObject* python_memory_observer = nullptr;

void tell_of_memory(bool allocated, DeviceIndex device, void* address, size_t bytes, halstream_id stream) {
  if (!Py_IsInitialized()) return;
  uint64_t handle = 0;
  if (stream != default_stream(device)) core->stream_handle(stream, &handle);
  auto state = PyGILState_Ensure();
  if (python_memory_observer != nullptr) {
    PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
    PyErr_Fetch(&type, &value, &traceback);  // a tensor may be freed while an exception travels
    PyObject* observer = python_memory_observer;
    Py_INCREF(observer);
    PyObject* result = PyObject_CallFunction(
        observer, "OiKKK", allocated ? Py_True : Py_False, static_cast<int>(device),
        static_cast<unsigned long long>(reinterpret_cast<uintptr_t>(address)), static_cast<unsigned long long>(bytes),
        static_cast<unsigned long long>(handle));
    if (result == nullptr) PyErr_WriteUnraisable(observer);
    Py_XDECREF(result);
    Py_DECREF(observer);
    PyErr_Restore(type, value, traceback);
  }
  PyGILState_Release(state);
}

PyObject* set_memory_observer(PyObject*, PyObject* observer) {
  bool on = observer != Py_None;
  if (on) Py_INCREF(observer);
  PyObject* before = python_memory_observer;
  python_memory_observer = on ? observer : nullptr;
  observe_memory(on ? &tell_of_memory : nullptr);
  Py_XDECREF(before);
  Py_RETURN_NONE;
}

PyObject* running_module(PyObject*, PyObject* path) {
  const char* text = PyUnicode_AsUTF8(path);
  if (text == nullptr) return nullptr;
  return guarded([&]() -> PyObject* {
    set_running_module(text);
    Py_RETURN_NONE;
  });
}

template <void (*change)(const std::string&)>
PyObject* change_operator(PyObject*, PyObject* name) {
  const char* text = PyUnicode_AsUTF8(name);
  if (text == nullptr) return nullptr;
  return guarded([&]() -> PyObject* {
    change(text);
    Py_RETURN_NONE;
  });
}

PyObject* operator_names(PyObject*, PyObject*) {
  const auto& names = served_operators();
  PyObject* list = PyList_New(static_cast<Py_ssize_t>(names.size()));
  for (size_t i = 0; list != nullptr && i < names.size(); i++) {
    PyList_SET_ITEM(list, static_cast<Py_ssize_t>(i), PyUnicode_FromString(names[i].c_str()));
  }
  return list;
}

PyObject* unsupported_operators(PyObject*, PyObject*) {
  const auto& all = refusals();
  PyObject* list = PyList_New(static_cast<Py_ssize_t>(all.size()));
  Py_ssize_t place = 0;
  for (auto refusal = all.begin(); list != nullptr && refusal != all.end(); ++refusal) {
    PyList_SET_ITEM(
        list, place++,
        Py_BuildValue("(sss)", refusal->name.c_str(), refusal->reason.c_str(), refusal->instead.c_str()));
  }
  return list;
}

PyObject* visible_devices(PyObject*, PyObject*) {
  auto ordinals = visible_ordinals();
  PyObject* list = PyList_New(static_cast<Py_ssize_t>(ordinals.size()));
  for (size_t i = 0; list != nullptr && i < ordinals.size(); i++) {
    PyList_SET_ITEM(list, static_cast<Py_ssize_t>(i), PyLong_FromLong(ordinals[i]));
  }
  return list;
}

PyObject* name_devices(PyObject*, PyObject* texts) {
  std::vector<std::string> uuids;
  for (Py_ssize_t i = 0; i < PyList_Size(texts); i++) {
    const char* text = PyUnicode_AsUTF8(PyList_GetItem(texts, i));
    if (text == nullptr) return nullptr;
    uuids.emplace_back(text);
  }
  set_uuids(std::move(uuids));
  return PyLong_FromLong(runtime_devices());
}

PyObject* start(PyObject*, PyObject*) {
  return guarded([&]() -> PyObject* {
    require_device();
    Py_RETURN_NONE;
  });
}

PyObject* torch_c_names(PyObject*, PyObject*) {
  PyObject* list = PyList_New(0);
  for (auto* table : {torch_c_functions, checkpoint_functions, attention_functions}) {
    for (auto* entry = table; list != nullptr && entry->ml_name != nullptr; entry++) {
      PyObject* name = PyUnicode_FromString(entry->ml_name);
      if (name == nullptr || PyList_Append(list, name) != 0) Py_CLEAR(list);
      Py_XDECREF(name);
    }
  }
  return list;
}

PyMethodDef functions[] = {
    {"install", install, METH_O, "Take over torch's CUDA device type, given halstream.get_api()."},
    {"installed", installed, METH_NOARGS, "Whether install was called."},
    {"start", start, METH_NOARGS, "Read CUDA_VISIBLE_DEVICES for the last time; raise where no device is visible."},
    {"visible_devices", visible_devices, METH_NOARGS, "The ordinals of the devices that CUDA_VISIBLE_DEVICES leaves."},
    {"name_devices", name_devices, METH_O, "Set the uuids of all devices; how many devices the runtime has."},
    {"finish", without_arguments<finish>, METH_NOARGS, "Make no further calls of the runtime: the process is ending."},
    {"stream_new", stream_new, METH_VARARGS, "torch's id of the next stream of a device's pool."},
    {"stream_handle", stream_handle_of, METH_VARARGS, "The native handle of a stream; 0 for the default one."},
    {"stream_priority", stream_priority, METH_VARARGS, "The priority of a stream."},
    {"default_generator", generator_of, METH_VARARGS, "The generator that a device's random operators draw from."},
    {"mem_get_info", mem_get_info, METH_VARARGS, "Free and total bytes of a device."},
    {"device_name", device_name, METH_VARARGS, "The runtime's name of a device."},
    {"pin_kind", pin_kind, METH_O, "0 for pageable memory, 1 for pinned, 2 for a device's."},
    {"address_of_tensor", address_of_tensor, METH_O, "Where a tensor is in memory, 0 if it is in none."},
    {"is_used_by_copies", is_used_by_copies, METH_O,
     "Whether streams may copy from or to memory of the host at any time: it is pinned, or pageable and "
     "the target of a copy with non_blocking."},
    {"watch_host_accesses", watch, METH_O, "Declare what CPU operators read and write in such memory, or stop."},
    {"observe_memory", set_memory_observer, METH_O, "Call a function with each allocation and free, or none."},
    {"observe_backward", observe_backward, METH_VARARGS,
     "Call one function when a backward pass begins on a thread, and one after each wait of the host that it makes, or none."},
    {"running_module", running_module, METH_O, "Set the path of the torch.nn.Module that this thread runs, for reports."},
    {"storage_resize", storage_resize, METH_VARARGS, "Change the size of a storage on a device, in stream order."},
    {"host_register", host_register, METH_VARARGS, "Let memory count as pinned; whether it did not before."},
    {"host_unregister", host_unregister, METH_O, "Let it count as pageable again; whether it was registered."},
    {"counters", counter_values, METH_NOARGS, "How many operators ran and run, and what made the host wait."},
    {"reset_counters", without_arguments<reset_counters>, METH_NOARGS, "Set the counters to zero."},
    {"before_fork", without_arguments<before_fork>, METH_NOARGS, "Wait until no kernel runs; none begins after it."},
    {"after_fork_in_parent", without_arguments<after_fork_in_parent>, METH_NOARGS, "Let kernels begin again."},
    {"after_fork_in_child", without_arguments<after_fork_in_child>, METH_NOARGS, "Forget the parent's threads."},
    {"add_operator", change_operator<serve_operator>, METH_O, "Serve one more operator, through its CPU kernel."},
    {"refuse_operator", change_operator<refuse_operator>, METH_O, "Refuse one more operator, by its name."},
    {"operators", operator_names, METH_NOARGS, "Names of the operators that run on the device."},
    {"unsupported_operators", unsupported_operators, METH_NOARGS, "Names, reasons and what to do instead."},
    {"process_group_classes", add_process_group_classes, METH_NOARGS, "The classes of torch.distributed's backend."},
    {"ranks", describe_ranks, METH_NOARGS,
     "What this process knows of the other ranks of its groups, and what its collectives wait for; None without any."},
    {"publish_wait", publish_wait_of_rank, METH_VARARGS,
     "Say to the other ranks that this one waits, unless there was progress, and what it found; whether it was said."},
    {"withdraw_wait", withdraw_wait_of_rank, METH_NOARGS, "Take that back."},
    {"torch_c_names", torch_c_names, METH_NOARGS, "Names of the functions here that replace those of torch._C."},
    {nullptr, nullptr, 0, nullptr}};

PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "halstream_torch_device", "torch's CUDA device type on halstream.", -1, functions,
    nullptr, nullptr, nullptr, nullptr};

}  // namespace

}  // namespace halstream_torch

extern "C" __attribute__((visibility("default"))) PyObject* PyInit_halstream_torch_device() {
  PyObject* module = PyModule_Create(&halstream_torch::definition);
  for (auto* functions :
       {halstream_torch::torch_c_functions, halstream_torch::checkpoint_functions, halstream_torch::attention_functions,
        halstream_torch::capture_functions, halstream_torch::extension_functions, halstream_torch::process_functions}) {
    if (module != nullptr && PyModule_AddFunctions(module, functions) != 0) Py_CLEAR(module);
  }
  return module;
}
