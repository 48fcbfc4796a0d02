// The kernels of a device type in Paddle's registry, and the functions that Python calls.
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "launch.h"
#include "shared.h"

#include <paddle/phi/common/place.h>
#include <paddle/phi/core/compat/convert_utils.h>

#include <algorithm>
#include <exception>
#include <utility>

namespace halstream_paddle {

const Shared* shared = nullptr;

namespace {

// What the registry had before, by operator and key; an invalid kernel where it had none.
std::vector<std::pair<std::string, std::pair<phi::KernelKey, phi::Kernel>>> before;

// The wheel's plain kernels for CPUs: not those of oneDNN.
bool is_plain(const phi::KernelKey& key) {
  return key.backend() == phi::Backend::CPU && key.layout() == phi::DataLayout::ALL_LAYOUT;
}

phi::Kernel kernel_for(const Operator& one, const phi::Kernel& of_cpu, phi::Backend backend) {
  phi::Kernel made(one.function, one.variadic);
  *made.mutable_args_def() = of_cpu.args_def();
  for (auto& input : made.mutable_args_def()->input_defs())
    if (input.backend == phi::Backend::CPU) input.SetBackend(backend);
  for (auto& output : made.mutable_args_def()->output_defs())
    if (output.backend == phi::Backend::CPU) output.SetBackend(backend);
  return made;
}

void add(Operator& one, phi::Backend backend) {
  auto& all = phi::KernelFactory::Instance().kernels();
  auto found = all.find(one.name);
  if (found == all.end()) return;
  std::vector<std::pair<phi::KernelKey, phi::Kernel>> made;
  for (auto& [key, kernel] : found->second) {
    auto* function = is_plain(key) ? kernel.GetVariadicKernelFn<void*>() : nullptr;
    auto type = static_cast<size_t>(key.dtype());
    if (function == nullptr || type >= std::size(one.kernels)) continue;
    one.kernels[type] = function;
    made.emplace_back(phi::KernelKey(backend, key.layout(), key.dtype()), kernel_for(one, kernel, backend));
  }
  for (auto& [key, kernel] : made) {
    auto old = found->second.find(key);
    before.emplace_back(one.name, std::pair(key, old == found->second.end() ? phi::Kernel() : old->second));
    found->second[key] = kernel;
  }
}

void remove_all() {
  auto& all = phi::KernelFactory::Instance().kernels();
  for (auto last = before.rbegin(); last != before.rend(); ++last) {
    auto& [key, kernel] = last->second;
    if (kernel.IsValid()) all[last->first][key] = kernel;
    else all[last->first].erase(key);
  }
  before.clear();
}

// Calls a function; an exception of C++ becomes Python's RuntimeError.
template <class Function>
PyObject* guarded(Function call) {
  try {
    return call();
  } catch (const std::exception& error) {
    return PyErr_Format(PyExc_RuntimeError, "%s", error.what());
  }
}

PyObject* start(PyObject*, PyObject* args) {
  PyObject* capsule;
  const char* type;
  if (!PyArg_ParseTuple(args, "Os", &capsule, &type)) return nullptr;
  shared = static_cast<const Shared*>(PyCapsule_GetPointer(capsule, "halstream_paddle.shared"));
  if (shared == nullptr) return nullptr;
  return guarded([&] {
    if (before.empty()) {
      auto backend = phi::TransToPhiBackend(phi::CustomPlace(type, 0));
      for (auto* one : operators()) add(*one, backend);
    }
    Py_RETURN_NONE;
  });
}

PyObject* stop(PyObject*, PyObject*) {
  return guarded([] {
    remove_all();
    Py_RETURN_NONE;
  });
}

PyObject* names(bool (*wanted)(const std::string& name, const phi::KernelKeyMap& kernels)) {
  auto* list = PyList_New(0);
  if (list == nullptr) return nullptr;
  for (auto& [name, kernels] : phi::KernelFactory::Instance().kernels()) {
    if (!wanted(name, kernels)) continue;
    auto* text = PyUnicode_FromString(name.c_str());
    if (text == nullptr || PyList_Append(list, text) != 0) {
      Py_XDECREF(text);
      Py_DECREF(list);
      return nullptr;
    }
    Py_DECREF(text);
  }
  if (PyList_Sort(list) != 0) Py_CLEAR(list);
  return list;
}

PyObject* registered(PyObject*, PyObject*) {
  return guarded([] {
    return names([](const std::string& name, const phi::KernelKeyMap&) {
      return std::any_of(before.begin(), before.end(), [&](auto& one) { return one.first == name; });
    });
  });
}

PyObject* of_cpu(PyObject*, PyObject*) {
  return guarded([] {
    return names([](const std::string&, const phi::KernelKeyMap& kernels) {
      return std::any_of(kernels.begin(), kernels.end(), [](auto& one) { return is_plain(one.first); });
    });
  });
}

PyMethodDef methods[] = {
    {"start", start, METH_VARARGS, "start(shared, type): register the operators for a device type."},
    {"stop", stop, METH_NOARGS, "Give the registry back what it had."},
    {"registered", registered, METH_NOARGS, "Names of the operators that run in stream order."},
    {"of_cpu", of_cpu, METH_NOARGS, "Names of all operators with a kernel for CPUs."},
    {nullptr, nullptr, 0, nullptr},
};

PyModuleDef definition = {PyModuleDef_HEAD_INIT, "halstream_paddle_operators", nullptr, -1, methods,
                          nullptr, nullptr, nullptr, nullptr};

}  // namespace
}  // namespace halstream_paddle

PyMODINIT_FUNC PyInit_halstream_paddle_operators() { return PyModule_Create(&halstream_paddle::definition); }
