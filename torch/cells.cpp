// The fused cells of LSTM and GRU and the fused RMSNorm, which torch has for CUDA only, from plain operators.
#include "cells.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/zeros_like.h>

namespace halstream_torch {

namespace {

at::Tensor tensor_at(const Stack& stack, size_t index) {
  return stack[index].isTensor() ? stack[index].toTensor() : at::Tensor();
}

at::Tensor one_minus(const at::Tensor& value) { return value.neg().add_(1); }

at::Tensor plus(const at::Tensor& value, const at::Tensor& bias) { return bias.defined() ? value.add(bias) : value; }

}  // namespace

// (input_gates, hidden_gates, cx, input_bias?, hidden_bias?) -> (hy, cy, the four activated gates)
void lstm_cell(Stack& stack, uint64_t) {
  auto cx = tensor_at(stack, 2);
  auto gates = plus(tensor_at(stack, 0), tensor_at(stack, 3)).add(plus(tensor_at(stack, 1), tensor_at(stack, 4)));
  auto parts = gates.chunk(4, 1);
  auto input = parts[0].sigmoid(), forget = parts[1].sigmoid(), cell = parts[2].tanh(), output = parts[3].sigmoid();
  auto cy = forget.mul(cx).add(input.mul(cell));
  stack = {output.mul(cy.tanh()), cy, at::cat({input, forget, cell, output}, 1)};
}

// (grad_hy?, grad_cy?, cx, cy, activated gates, has_bias) -> (grad_gates, grad_cx, grad_bias)
void lstm_cell_backward(Stack& stack, uint64_t) {
  auto grad_hy = tensor_at(stack, 0), grad_cy = tensor_at(stack, 1);
  auto cx = tensor_at(stack, 2), cy = tensor_at(stack, 3);
  bool has_bias = stack[5].toBool();
  if (!grad_hy.defined() && !grad_cy.defined()) {
    stack = {at::Tensor(), at::Tensor(), at::Tensor()};
    return;
  }
  auto parts = tensor_at(stack, 4).chunk(4, 1);
  auto input = parts[0], forget = parts[1], cell = parts[2], output = parts[3];
  if (!grad_hy.defined()) grad_hy = at::zeros_like(cx);
  auto tanh_cy = cy.tanh();
  auto total = grad_hy.mul(output).mul(one_minus(tanh_cy.mul(tanh_cy)));
  if (grad_cy.defined()) total = total.add(grad_cy);
  auto grad_output = grad_hy.mul(tanh_cy).mul(output).mul(one_minus(output));
  auto grad_input = total.mul(cell).mul(input).mul(one_minus(input));
  auto grad_forget = total.mul(cx).mul(forget).mul(one_minus(forget));
  auto grad_cell = total.mul(input).mul(one_minus(cell.mul(cell)));
  auto grad_gates = at::cat({grad_input, grad_forget, grad_cell, grad_output}, 1);
  stack = {grad_gates, total.mul(forget), has_bias ? grad_gates.sum(0) : at::Tensor()};
}

// (input_gates, hidden_gates, hx, input_bias?, hidden_bias?) -> (hy, what the backward function needs)
void gru_cell(Stack& stack, uint64_t) {
  auto hx = tensor_at(stack, 2);
  auto from_input = plus(tensor_at(stack, 0), tensor_at(stack, 3)).chunk(3, 1);
  auto from_hidden = plus(tensor_at(stack, 1), tensor_at(stack, 4)).chunk(3, 1);
  auto reset = from_input[0].add(from_hidden[0]).sigmoid();
  auto update = from_input[1].add(from_hidden[1]).sigmoid();
  auto candidate = from_input[2].add(reset.mul(from_hidden[2])).tanh();
  stack = {
      candidate.add(update.mul(hx.sub(candidate))), at::cat({reset, update, candidate, hx, from_hidden[2]}, 1)};
}

// (grad_hy, workspace, has_bias) -> (grad_input_gates, grad_hidden_gates, grad_hx, two gradients of biases)
void gru_cell_backward(Stack& stack, uint64_t) {
  auto grad = tensor_at(stack, 0);
  bool has_bias = stack[2].toBool();
  auto parts = tensor_at(stack, 1).chunk(5, 1);
  auto reset = parts[0], update = parts[1], candidate = parts[2], hx = parts[3], hidden = parts[4];
  auto grad_update = grad.mul(hx.sub(candidate)).mul(one_minus(update)).mul(update);
  auto grad_candidate = grad.mul(one_minus(update)).mul(one_minus(candidate.mul(candidate)));
  auto grad_hidden = grad_candidate.mul(reset);
  auto grad_reset = grad_candidate.mul(hidden).mul(one_minus(reset)).mul(reset);
  auto input_gates = at::cat({grad_reset, grad_update, grad_candidate}, 1);
  auto hidden_gates = at::cat({grad_reset, grad_update, grad_hidden}, 1);
  stack = {
      input_gates, hidden_gates, grad.mul(update), has_bias ? input_gates.sum(0) : at::Tensor(),
      has_bias ? hidden_gates.sum(0) : at::Tensor()};
}

namespace {

std::vector<int64_t> last_dimensions(const at::Tensor& input, size_t count) {
  std::vector<int64_t> dimensions;
  for (size_t i = 0; i < count; i++) dimensions.push_back(input.dim() - static_cast<int64_t>(count - i));
  return dimensions;
}

at::ScalarType wide_type(const at::Tensor& input) {
  auto type = input.scalar_type();
  return type == at::kHalf || type == at::kBFloat16 ? at::kFloat : type;
}

}  // namespace

// (input, normalized_shape, weight?, eps?) -> (output, reciprocal of the root mean square)
void rms_norm(Stack& stack, uint64_t) {
  auto input = tensor_at(stack, 0), weight = tensor_at(stack, 2);
  auto dimensions = last_dimensions(input, stack[1].toIntVector().size());
  auto x = input.to(wide_type(input));
  double eps = stack[3].isNone() ? (wide_type(input) == at::kDouble ? 2.220446049250313e-16 : 1.1920928955078125e-07)
                                 : stack[3].toDouble();
  auto rstd = x.mul(x).mean(dimensions, /*keepdim=*/true).add(eps).rsqrt();
  auto output = x.mul(rstd);
  if (weight.defined()) output = output.mul(weight);
  stack = {output.to(input.scalar_type()), rstd};
}

// (grad_out, input, normalized_shape, rstd, weight?, output_mask) -> (grad_input, grad_weight)
void rms_norm_backward(Stack& stack, uint64_t) {
  auto input = tensor_at(stack, 1), rstd = tensor_at(stack, 3), weight = tensor_at(stack, 4);
  auto shape = stack[2].toIntVector();
  auto mask = stack[5].toBoolList();
  auto dimensions = last_dimensions(input, shape.size());
  auto grad = tensor_at(stack, 0).to(wide_type(input));
  auto normal = input.to(wide_type(input)).mul(rstd);
  at::Tensor grad_input, grad_weight;
  if (mask[0]) {
    auto scaled = weight.defined() ? grad.mul(weight) : grad;
    grad_input = scaled.sub(normal.mul(scaled.mul(normal).mean(dimensions, true))).mul(rstd).to(input.scalar_type());
  }
  if (mask[1] && weight.defined()) {
    auto product = grad.mul(normal);
    for (auto batch = input.dim() - static_cast<int64_t>(shape.size()); batch > 0; batch--) product = product.sum(0);
    grad_weight = product.to(weight.scalar_type());
  }
  stack = {grad_input, grad_weight};
}

}  // namespace halstream_torch
