// Making and resizing CUDA tensors.
#pragma once

#include "metadata.h"
#include "streams.h"

#include <ATen/core/Tensor.h>

namespace halstream_torch {

// Tensors of the current device, in a block of its current stream's pool.
at::Tensor empty_like_output(const Metadata::Output& output);
at::Tensor empty_strided(at::IntArrayRef sizes, at::IntArrayRef strides, c10::ScalarType dtype);
at::Tensor empty(at::IntArrayRef sizes, c10::ScalarType dtype, std::optional<c10::MemoryFormat> format);

// Gives `tensor` contiguous sizes; its storage grows if it must, keeping what it holds.
void resize_tensor(const at::Tensor& tensor, at::IntArrayRef sizes);
void resize_bytes(const c10::Storage& storage, size_t bytes);

// Makes `tensor` a view of `source`. Null strides: contiguous ones.
at::Tensor& set_storage(
    at::Tensor& tensor, c10::Storage source, int64_t offset, at::IntArrayRef sizes, at::IntArrayRef strides);

}  // namespace halstream_torch
