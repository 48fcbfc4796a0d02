#include "backward_waits.h"

#include <torch/csrc/autograd/graph_task.h>

namespace halstream_torch {

namespace {

PyObject* wait_observer = nullptr;  // guarded by the GIL

}  // namespace

void note_backward_wait() {
  if (wait_observer == nullptr || torch::autograd::get_current_graph_task_id() == -1) return;
  PyObject* observer = wait_observer;  // which another thread may replace during the call
  Py_INCREF(observer);
  PyObject* done = PyObject_CallObject(observer, nullptr);
  if (done == nullptr) PyErr_WriteUnraisable(observer);
  Py_XDECREF(done);
  Py_DECREF(observer);
}

PyObject* observe_backward_waits(PyObject*, PyObject* observer) {
  PyObject* before = wait_observer;
  wait_observer = observer == Py_None ? nullptr : observer;
  Py_XINCREF(wait_observer);
  Py_XDECREF(before);
  Py_RETURN_NONE;
}

}  // namespace halstream_torch
