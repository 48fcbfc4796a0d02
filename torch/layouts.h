// Tensors that are not strided ones of plain numbers: sparse, nested and quantized tensors, and the strided ones they
// consist of.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/DispatchKey.h>
#include <c10/util/FunctionRef.h>
#include <c10/util/SmallVector.h>

#include <string>

namespace halstream_torch {

using Parts = c10::SmallVector<at::Tensor, 3>;

// Strided, and of numbers that are stored as they are.
bool is_plain(const at::Tensor& tensor);
// The plain tensors that hold what `tensor` holds: indices and values, the memory of a nested or quantized one.
Parts parts_of(const at::Tensor& tensor);
// A tensor of the layout, sizes and flags of `like` that consists of `parts`, which all lie on one device.
at::Tensor assemble(const at::Tensor& like, const Parts& parts);
// Makes what an operator in place left of `tensor`'s alias on the CPU that of `tensor`: `put` gives the device's copy of
// a part that lies elsewhere than before.
void take_parts(
    const at::Tensor& tensor, const at::Tensor& alias, c10::function_ref<at::Tensor(const at::Tensor&)> put);

// Lets a quantized tensor whose parts were copied from `source` count as `source` does.
void take_quantizer(const at::Tensor& tensor, const at::Tensor& source);

// Whether torch's kernel of the operator for the key calls a GPU. The others are written once for every device: they call
// operators on the parts.
bool has_kernel_for_gpus(c10::DispatchKey key, const std::string& operator_name);
// The CPU's key for the same layout.
c10::DispatchKey cpu_key(c10::DispatchKey key);

}  // namespace halstream_torch
