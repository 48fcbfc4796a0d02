// Python functions written against CPython's interface: one wrapper turns exceptions of C++ into Python's.
#pragma once

#include <Python.h>

#include <torch/csrc/Exceptions.h>

namespace halstream_torch {

// Runs `body`, which returns a new reference.
template <class Body>
PyObject* guarded(Body body) {
  HANDLE_TH_ERRORS
  return body();
  END_HANDLE_TH_ERRORS
}

// The functions that stand in for those of torch._C; they end with an empty entry.
extern PyMethodDef torch_c_functions[];

// Those among them of checkpoints of private pools; they end with an empty entry.
extern PyMethodDef checkpoint_functions[];

// Those of fused attention; they end with an empty entry.
extern PyMethodDef attention_functions[];

// Those of captures and of pools of memory; they end with an empty entry.
extern PyMethodDef capture_functions[];

// Those for compiled extensions; they end with an empty entry.
extern PyMethodDef extension_functions[];

// Those of memory of other processes; they end with an empty entry.
extern PyMethodDef process_functions[];

}  // namespace halstream_torch
