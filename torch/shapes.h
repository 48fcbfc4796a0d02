// Shapes of results by torch's own C++ functions, without the ones in Python that stand before them.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

namespace halstream_torch {

// The meta kernel in C++ of an operator, or null if it is not listed. torch puts
// functions in Python before these kernels: they take Python's lock and fifty times as long, and the first one
// imports torch._dynamo. The results are the same: CPU and CUDA kernels use the functions in C++.
const c10::KernelFunction* shapes_of(const c10::OperatorHandle& op);

}  // namespace halstream_torch
