#include "substitutes.h"

#include "attention.h"
#include "cells.h"
#include "normalization.h"
#include "sync_batch_norm.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros_like.h>

#include <unordered_map>

#include "ATen/ops/_log_softmax.h"
#include "ATen/ops/_log_softmax_backward_data.h"
#include "ATen/ops/_softmax.h"
#include "ATen/ops/_softmax_backward_data.h"
#include "ATen/ops/addmm.h"
#include "ATen/ops/addmv.h"

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

// The variant of an operator that writes into its last argument.
template <Substitute substitute>
void into_out(Stack& stack, uint64_t seed) {
  auto out = stack.back().toTensor();
  stack.pop_back();
  substitute(stack, seed);
  auto result = stack[0].toTensor();
  TORCH_CHECK(
      out.scalar_type() == result.scalar_type(), "out_dtype must be the same as the dtype of the provided out tensor");
  if (out.sizes() != result.sizes()) out.resize_(result.sizes());
  out.copy_(result);
  stack = {out};
}

// addmm.out and addmv.out (self, matrix, other, *, beta, alpha, out) with a compressed matrix: the CPU's kernels, which
// are MKL's, have no 16-bit types.
void compressed_product(Stack& stack, uint64_t) {
  auto out = stack.back().toTensor();
  auto self = tensor_at(stack, 0), matrix = tensor_at(stack, 1), other = tensor_at(stack, 2);
  auto beta = stack[3].toScalar(), alpha = stack[4].toScalar();
  bool product_of_matrices = other.dim() == 2;
  auto call = [&](const at::Tensor& self, const at::Tensor& matrix, const at::Tensor& other, at::Tensor& out) {
    product_of_matrices ? at::addmm_out(out, self, matrix, other, beta, alpha)
                        : at::addmv_out(out, self, matrix, other, beta, alpha);
  };
  if (c10::isReducedFloatingType(out.scalar_type()) && out.layout() == c10::kStrided) {
    auto wide = at::empty({0}, out.options().dtype(at::kFloat));
    call(self.to(at::kFloat), matrix.to(at::kFloat), other.to(at::kFloat), wide);
    if (out.sizes() != wide.sizes()) out.resize_(wide.sizes());
    out.copy_(wide);
  } else {
    call(self, matrix, other, out);
  }
  stack = {out};
}

// _softmax(self, dim, half_to_float): the result of 16-bit numbers in 32 bits, which the CPU's kernels refuse.
template <at::Tensor (*softmax)(const at::Tensor&, int64_t, bool)>
void wide_softmax(Stack& stack, uint64_t) {
  auto input = tensor_at(stack, 0);
  if (stack[2].toBool()) input = input.to(at::kFloat);
  stack = {softmax(input, stack[1].toInt(), false)};
}

// _softmax_backward_data(grad_output, output, dim, input_dtype): the gradient in the type that the input had.
template <at::Tensor (*backward)(const at::Tensor&, const at::Tensor&, int64_t, c10::ScalarType)>
void wide_softmax_backward(Stack& stack, uint64_t) {
  auto gradient = tensor_at(stack, 0);
  auto result = backward(gradient, tensor_at(stack, 1), stack[2].toInt(), gradient.scalar_type());
  stack = {result.to(stack[3].toScalarType())};
}

const std::unordered_map<std::string, Substitute>& substitutes() {
  static const auto* all = new std::unordered_map<std::string, Substitute>{
      {"aten::native_dropout", &native_dropout},
      {"aten::_masked_scale", &masked_scale},
      {"aten::_softmax", &wide_softmax<&at::_softmax>},
      {"aten::_log_softmax", &wide_softmax<&at::_log_softmax>},
      {"aten::_softmax_backward_data", &wide_softmax_backward<&at::_softmax_backward_data>},
      {"aten::_log_softmax_backward_data", &wide_softmax_backward<&at::_log_softmax_backward_data>},
      {"aten::_thnn_fused_lstm_cell", &lstm_cell},
      {"aten::_thnn_fused_lstm_cell_backward_impl", &lstm_cell_backward},
      {"aten::_thnn_fused_gru_cell", &gru_cell},
      {"aten::_thnn_fused_gru_cell_backward", &gru_cell_backward},
      {"aten::_fused_rms_norm", &rms_norm},
      {"aten::_fused_rms_norm_backward", &rms_norm_backward},
      {"aten::native_layer_norm_backward", &layer_norm_backward},
      {"aten::native_batch_norm_backward", &batch_norm_backward},
      {"aten::batch_norm_stats", &batch_norm_stats},
      {"aten::batch_norm_gather_stats", &batch_norm_gather_stats},
      {"aten::batch_norm_gather_stats_with_counts", &batch_norm_gather_stats},
      {"aten::batch_norm_elemt", &batch_norm_elemt},
      {"aten::batch_norm_backward_reduce", &batch_norm_backward_reduce},
      {"aten::batch_norm_backward_elemt", &batch_norm_backward_elemt},
      {"aten::mm.dtype", &mm_dtype},
      {"aten::bmm.dtype", &mm_dtype},
      {"aten::addmm.dtype", &addmm_dtype},
      {"aten::baddbmm.dtype", &addmm_dtype},
      {"aten::mm.dtype_out", &into_out<&mm_dtype>},
      {"aten::bmm.dtype_out", &into_out<&mm_dtype>},
      {"aten::addmm.dtype_out", &into_out<&addmm_dtype>},
      {"aten::baddbmm.dtype_out", &into_out<&addmm_dtype>},
  };
  return *all;
}

}  // namespace

Substitute substitute_of(const c10::OperatorHandle& op) {
  const auto& overload = op.schema().overload_name();
  if (auto attention = attention_of(op.schema().name(), overload)) return attention;
  auto found = substitutes().find(overload.empty() ? op.schema().name() : op.schema().name() + "." + overload);
  return found != substitutes().end() ? found->second : nullptr;
}

Substitute substitute_of_compressed(const c10::OperatorHandle& op) {
  const auto& name = op.schema().name();
  bool product = name == "aten::addmm" || name == "aten::addmv";
  return product && op.schema().overload_name() == "out" ? &compressed_product : nullptr;
}

}  // namespace halstream_torch
