#include "substitutes.h"

#include "cells.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros_like.h>

#include <unordered_map>

namespace halstream_torch {

namespace {

at::Tensor tensor_at(Stack& stack, size_t index) {
  return stack[index].isTensor() ? stack[index].toTensor() : at::Tensor();
}

// native_dropout(input, p, train) -> (output, mask)
void native_dropout(Stack& stack, uint64_t seed) {
  auto input = tensor_at(stack, 0);
  auto p = stack[1].toDouble();
  bool train = stack[2].isNone() || stack[2].toBool();
  auto mask = at::empty(input.sizes(), input.options().dtype(at::kBool));
  at::Tensor output;
  if (!train || p == 0) {
    mask.fill_(true);
    output = input.clone();
  } else if (p == 1) {
    mask.fill_(false);
    output = at::zeros_like(input);
  } else {
    mask.bernoulli_(1 - p, at::detail::createCPUGenerator(seed));
    output = input.mul(mask).mul_(1 / (1 - p));
  }
  stack = {output, mask};
}

// _masked_scale(self, mask, scale)
void masked_scale(Stack& stack, uint64_t) {
  stack = {tensor_at(stack, 0).mul(tensor_at(stack, 1)).mul_(stack[2].toDouble())};
}

// mm.dtype and bmm.dtype (self, mat2, out_dtype): products in the wider type.
void mm_dtype(Stack& stack, uint64_t) {
  auto dtype = stack[2].toScalarType();
  stack = {tensor_at(stack, 0).to(dtype).matmul(tensor_at(stack, 1).to(dtype))};
}

// addmm.dtype and baddbmm.dtype (self, mat1, mat2, out_dtype, beta, alpha)
void addmm_dtype(Stack& stack, uint64_t) {
  auto dtype = stack[3].toScalarType();
  auto product = tensor_at(stack, 1).to(dtype).matmul(tensor_at(stack, 2).to(dtype)).mul(stack[5].toScalar());
  stack = {product.add(tensor_at(stack, 0).to(dtype), stack[4].toScalar())};
}

const std::unordered_map<std::string, Substitute>& table() {
  static const auto* all = new std::unordered_map<std::string, Substitute>{
      {"aten::native_dropout", &native_dropout},
      {"aten::_masked_scale", &masked_scale},
      {"aten::_thnn_fused_lstm_cell", &lstm_cell},
      {"aten::_thnn_fused_lstm_cell_backward_impl", &lstm_cell_backward},
      {"aten::_thnn_fused_gru_cell", &gru_cell},
      {"aten::_thnn_fused_gru_cell_backward", &gru_cell_backward},
      {"aten::_fused_rms_norm", &rms_norm},
      {"aten::_fused_rms_norm_backward", &rms_norm_backward},
      {"aten::mm.dtype", &mm_dtype},
      {"aten::bmm.dtype", &mm_dtype},
      {"aten::addmm.dtype", &addmm_dtype},
      {"aten::baddbmm.dtype", &addmm_dtype},
  };
  return *all;
}

}  // namespace

Substitute substitute_of(const c10::OperatorHandle& op) {
  const auto& overload = op.schema().overload_name();
  auto found = table().find(overload.empty() ? op.schema().name() : op.schema().name() + "." + overload);
  return found != table().end() ? found->second : nullptr;
}

}  // namespace halstream_torch
