// A CUDA tensor seen as a CPU tensor on the same memory, and as ranges of bytes.
#pragma once

#include "core.h"

#include <ATen/core/Tensor.h>
#include <c10/util/SmallVector.h>

namespace halstream_torch {

using Ranges = c10::SmallVector<halstream_range, 8>;

// A CPU tensor with the sizes, strides, layout, type and flags of `tensor` on the same memory. It keeps nothing alive:
// a block that the program drops goes back to its stream at once, and the stream's order protects it.
at::Tensor cpu_alias(const at::Tensor& tensor);

// Adds the bytes that `tensor` covers: rows for a strided one, those of its parts for one of another layout. Of strides
// with more levels than can be listed shortly, it adds the whole extent.
void add_ranges(Ranges& ranges, const at::Tensor& tensor, uint32_t access);

}  // namespace halstream_torch
