#include "backward_order.h"

#include <torch/csrc/autograd/graph_task.h>

#include <atomic>

namespace halstream_torch {

namespace {

struct Observer {
  PyObject* call = nullptr;  // guarded by the GIL

  void set(PyObject* function) {
    PyObject* before = call;
    call = function == Py_None ? nullptr : function;
    Py_XINCREF(call);
    Py_XDECREF(before);
  }
  void notify() {
    if (call == nullptr) return;
    PyObject* observer = call;  // which another thread may replace during the call
    Py_INCREF(observer);
    PyObject* done = PyObject_CallObject(observer, nullptr);
    if (done == nullptr) PyErr_WriteUnraisable(observer);
    Py_XDECREF(done);
    Py_DECREF(observer);
  }
};

Observer begun, waited;
std::atomic<bool> observed{false};
thread_local int noted_pass = -1;

}  // namespace

void note_backward_operator() {
  if (!observed.load(std::memory_order_relaxed)) return;
  int pass = torch::autograd::get_current_graph_task_id();
  if (pass == -1 || pass == noted_pass || !Py_IsInitialized()) return;
  noted_pass = pass;
  auto state = PyGILState_Ensure();
  begun.notify();
  PyGILState_Release(state);
}

void note_backward_wait() {
  if (torch::autograd::get_current_graph_task_id() != -1) waited.notify();
}

PyObject* observe_backward(PyObject*, PyObject* observers) {
  PyObject *on_begin, *on_wait;
  if (!PyArg_ParseTuple(observers, "OO", &on_begin, &on_wait)) return nullptr;
  begun.set(on_begin);
  waited.set(on_wait);
  observed = on_begin != Py_None;
  Py_RETURN_NONE;
}

}  // namespace halstream_torch
