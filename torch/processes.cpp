// Storages on a device whose memory another process has allocated.
#include "core.h"
#include "python_functions.h"

#include <c10/core/StorageImpl.h>
#include <torch/csrc/DynamicTypes.h>

namespace halstream_torch {

namespace {

// What a storage keeps of the memory: the function that is called when nothing uses the storage any more.
void release(void* context) {
  if (!Py_IsInitialized() || finished()) return;  // the process ends, and with it the mapping
  auto state = PyGILState_Ensure();
  auto* released = static_cast<PyObject*>(context);
  PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
  PyErr_Fetch(&type, &value, &traceback);
  PyObject* result = PyObject_CallNoArgs(released);
  if (result == nullptr) PyErr_WriteUnraisable(released);
  Py_XDECREF(result);
  Py_DECREF(released);
  PyErr_Restore(type, value, traceback);
  PyGILState_Release(state);
}

// address, bytes, device, function without arguments
PyObject* storage_of_process(PyObject*, PyObject* args) {
  unsigned long long address = 0;
  Py_ssize_t bytes = 0;
  int device = 0;
  PyObject* released = nullptr;
  if (!PyArg_ParseTuple(args, "KniO", &address, &bytes, &device, &released)) return nullptr;
  return guarded([&] {
    c10::Device where(c10::DeviceType::CUDA, static_cast<c10::DeviceIndex>(device));
    Py_INCREF(released);
    c10::DataPtr data(reinterpret_cast<void*>(address), released, &release, where);
    return torch::createPyObject(c10::Storage(
        c10::Storage::use_byte_size_t(), static_cast<size_t>(bytes), std::move(data), nullptr, /*resizable=*/false));
  });
}

}  // namespace

PyMethodDef process_functions[] = {
    {"storage_of_process", storage_of_process, METH_VARARGS, "Make a storage of memory of another process."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace halstream_torch
