// Python functions written against CPython's interface: one wrapper turns exceptions of C++ into Python's.
#pragma once

#include <Python.h>

#include <torch/csrc/Exceptions.h>

namespace halstream_torch {

// Runs `body`, which returns a new reference, without the GIL where it asks for that itself.
template <class Body>
PyObject* guarded(Body body) {
  HANDLE_TH_ERRORS
  return body();
  END_HANDLE_TH_ERRORS
}

// Releases the GIL for a scope, so that a wait does not hold up other threads.
class WithoutGil {
 public:
  WithoutGil() : state_(PyEval_SaveThread()) {}
  ~WithoutGil() { PyEval_RestoreThread(state_); }
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;

 private:
  PyThreadState* state_;
};

// The functions that stand in for those of torch._C; they end with an empty entry.
extern PyMethodDef torch_c_functions[];

}  // namespace halstream_torch
