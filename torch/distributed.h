// What torch.distributed needs for CUDA tensors.
#pragma once

#include <Python.h>

namespace halstream_torch {

// Times of a GPU's events in DistributedDataParallel would be taken by CUDA: they are the host's from now on.
void install_reducer_timer();

// Adds the classes of the backend to the module, for builds of torch that have torch.distributed, and returns them.
PyObject* add_process_group_classes(PyObject* module, PyObject* nothing);

// Python's functions on what ranks know of each other: see ranks.h.
PyObject* describe_ranks(PyObject*, PyObject*);
PyObject* publish_wait_of_rank(PyObject*, PyObject* args);
PyObject* withdraw_wait_of_rank(PyObject*, PyObject*);

}  // namespace halstream_torch
