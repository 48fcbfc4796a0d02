// The functions of torch._C by which Inductor's trees of graphs set private pools back to a checkpoint.
#include "allocator.h"
#include "python_functions.h"
#include "streams.h"

#include <ATen/Tensor.h>
#include <c10/util/Exception.h>
#include <torch/csrc/autograd/python_variable.h>

#include <algorithm>

namespace halstream_torch {

namespace {

constexpr const char* capsule_name = "halstream_torch.pool_checkpoint";

using CheckpointPointer = std::shared_ptr<PoolCheckpoint>;

struct PoolOf {
  int device = 0;
  unsigned long long first = 0, second = 0;
  PoolPointer pool() const { return pool_with_id(resolve_device(static_cast<DeviceIndex>(device)), {first, second}); }
};

c10::StorageImpl& storage_at(PyObject* number) {
  auto* storage = static_cast<c10::StorageImpl*>(PyLong_AsVoidPtr(number));
  if (storage == nullptr) {
    if (PyErr_Occurred()) throw python_error();
    TORCH_CHECK(false, "0 is no storage");
  }
  return *storage;
}

PyObject* free_and_remove_deleter(PyObject*, PyObject* storage) {
  return guarded([&]() -> PyObject* {
    free_memory(storage_at(storage));
    Py_RETURN_NONE;
  });
}

PyObject* has_standard_deleter(PyObject*, PyObject* storage) {
  return guarded([&] { return PyBool_FromLong(owns_memory(storage_at(storage))); });
}

// device, (first, second), set of addresses
PyObject* check_live_allocations(PyObject*, PyObject* args) {
  PoolOf of;
  PyObject* expected = nullptr;
  if (!PyArg_ParseTuple(args, "i(KK)O!", &of.device, &of.first, &of.second, &PySet_Type, &expected)) return nullptr;
  return guarded([&]() -> PyObject* {
    auto addresses = lent_addresses(of.pool());
    bool same = static_cast<Py_ssize_t>(addresses.size()) == PySet_Size(expected);
    for (auto* address : addresses) {
      PyObject* number = PyLong_FromVoidPtr(address);
      if (number == nullptr) throw python_error();
      int found = PySet_Contains(expected, number);
      Py_DECREF(number);
      if (found < 0) throw python_error();
      same = same && found == 1;
    }
    return PyBool_FromLong(same);
  });
}

void drop_checkpoint(PyObject* capsule) {
  delete static_cast<CheckpointPointer*>(PyCapsule_GetPointer(capsule, capsule_name));
}

PyObject* get_checkpoint(PyObject*, PyObject* args) {
  PoolOf of;
  if (!PyArg_ParseTuple(args, "i(KK)", &of.device, &of.first, &of.second)) return nullptr;
  return guarded([&] {
    auto* made = new CheckpointPointer(checkpoint_of(of.pool()));
    PyObject* capsule = PyCapsule_New(made, capsule_name, drop_checkpoint);
    if (capsule == nullptr) delete made;
    return capsule;
  });
}

// device, checkpoint, storages that give up their memory, storages that own theirs then
PyObject* set_checkpoint(PyObject*, PyObject* args) {
  int device = 0;
  PyObject *capsule = nullptr, *stale = nullptr, *owners = nullptr;
  if (!PyArg_ParseTuple(args, "iOO!O!", &device, &capsule, &PyList_Type, &stale, &PyList_Type, &owners)) return nullptr;
  return guarded([&]() -> PyObject* {
    auto* state = static_cast<CheckpointPointer*>(PyCapsule_GetPointer(capsule, capsule_name));
    if (state == nullptr) throw python_error();
    for (Py_ssize_t i = 0; i < PyList_Size(stale); i++) {
      auto& storage = storage_at(PyList_GetItem(stale, i));
      if (owns_memory(storage)) free_memory(storage);
    }
    std::vector<c10::StorageImpl*> list;
    for (Py_ssize_t i = 0; i < PyList_Size(owners); i++) list.push_back(&storage_at(PyList_GetItem(owners, i)));
    restore(**state, list);
    Py_RETURN_NONE;
  });
}

// tensor, text
PyObject* set_access_error(PyObject*, PyObject* args) {
  PyObject* tensor = nullptr;
  const char* text = nullptr;
  if (!PyArg_ParseTuple(args, "Os", &tensor, &text)) return nullptr;
  return guarded([&]() -> PyObject* {
    TORCH_CHECK_TYPE(THPVariable_Check(tensor), "expected a torch.Tensor");
    THPVariable_Unpack(tensor).unsafeGetTensorImpl()->release_storage_and_set_meta_custom_data_ptr_error_msg_(
        std::string(text));
    Py_RETURN_NONE;
  });
}

}  // namespace

PyMethodDef checkpoint_functions[] = {
    {"_free_And_Remove_DeleterFn", free_and_remove_deleter, METH_O, nullptr},
    {"_has_Standard_Deleter", has_standard_deleter, METH_O, nullptr},
    {"_cuda_checkPoolLiveAllocations", check_live_allocations, METH_VARARGS, nullptr},
    {"_cuda_getCheckpointState", get_checkpoint, METH_VARARGS, nullptr},
    {"_cuda_setCheckpointPoolState", set_checkpoint, METH_VARARGS, nullptr},
    {"_set_storage_access_error_msg", set_access_error, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace halstream_torch
