// What the functions registered in torch.cuda._gpu_trace are called with, once
// torch._C._activate_gpu_trace() was called: torch's own sanitizer is built on them.
#pragma once

#include <Python.h>

#include "c10/core/impl/GPUTrace.h"

namespace halstream_torch {

constexpr auto traced_device = c10::DeviceType::CUDA;

// Gives `call` the interpreter's methods, such as trace_gpu_event_record, if somebody asked for
// them. They take the interpreter's lock: no other lock may be held. An exception that is being
// raised, by which a tensor may have come to its end, is kept: they could not run beside it.
template <typename Call>
void trace(Call call) {
  const auto* interpreter = c10::impl::GPUTrace::get_trace();
  if (interpreter == nullptr || !Py_IsInitialized()) return;
  auto state = PyGILState_Ensure();
  PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
  PyErr_Fetch(&type, &value, &traceback);
  call(**interpreter);
  PyErr_Restore(type, value, traceback);
  PyGILState_Release(state);
}

template <typename T>
uintptr_t address_of(T* what) {
  return reinterpret_cast<uintptr_t>(what);
}

}  // namespace halstream_torch
