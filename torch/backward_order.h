// The order between a backward pass, which runs on threads of autograd, and the thread that called it: what that thread
// had done before comes before the pass, and it waits for what the pass has waited for.
#pragma once

#include <Python.h>

namespace halstream_torch {

// Lets the observer know, before the first operator of a backward pass on the calling thread, that the pass runs there.
void note_backward_operator();

// Lets the observer know of a wait of the host that has returned, if a backward pass made it. The caller holds the GIL.
void note_backward_wait();

// Sets the two Python functions that are called then; None for none.
PyObject* observe_backward(PyObject*, PyObject* observers);

}  // namespace halstream_torch
