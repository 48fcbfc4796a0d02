// Waits of the host that nodes of a backward pass make: whoever called the pass waits for them, too.
#pragma once

#include <Python.h>

namespace halstream_torch {

// Lets the observer know of a wait that has returned, if a backward pass made it. The caller holds the GIL.
void note_backward_wait();

// Sets the Python function that is called after each such wait; None for none.
PyObject* observe_backward_waits(PyObject*, PyObject* observer);

}  // namespace halstream_torch
