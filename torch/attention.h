// Torch's fused attention operators, written with products and softmax.
#pragma once

#include "operators.h"

#include <ATen/SDPBackend.h>

namespace halstream_torch {

using FusedAttention = void (*)(Stack&, uint64_t seed);

// The function that runs for one of them; null for other operators. It computes what the CUDA kernel does, with results
// of the same sizes and types, and of meta tensors it tells these.
FusedAttention attention_of(const std::string& name, const std::string& overload);

// Whether the program allows the backend, and CUDA has it for such tensors.
bool attention_takes(
    at::SDPBackend backend, const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
    const std::optional<at::Tensor>& mask, bool causal, bool grouped);

// The operator that `scaled_dot_product_attention` takes on this device: the plain one where the program allows it,
// otherwise one that it allows and CUDA has for such tensors.
int64_t choose_attention(
    const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, const std::optional<at::Tensor>& mask,
    double dropout, bool causal, std::optional<double> scale, bool grouped);

}  // namespace halstream_torch
