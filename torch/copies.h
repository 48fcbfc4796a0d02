// Copies between the host and devices, and between devices, with torch's rules about waiting.
#pragma once

#include <ATen/core/Tensor.h>

namespace halstream_torch {

// aten::copy_ for CUDA tensors.
at::Tensor& copy_(at::Tensor& destination, const at::Tensor& source, bool non_blocking);

// aten::copy_ where one of the tensors is a quantized CUDA tensor.
at::Tensor& copy_quantized(at::Tensor& destination, const at::Tensor& source, bool non_blocking);

}  // namespace halstream_torch
