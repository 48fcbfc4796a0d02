#include "normalization.h"

#include <ATen/core/Tensor.h>

#include <array>
#include <tuple>

#include "ATen/ops/native_batch_norm_backward.h"
#include "ATen/ops/native_layer_norm_backward.h"

namespace halstream_torch {

namespace {

bool has_16_bits(const at::Tensor& tensor) {
  return tensor.scalar_type() == at::kHalf || tensor.scalar_type() == at::kBFloat16;
}

std::optional<at::Tensor> optional_at(const Stack& stack, size_t index) {
  if (!stack[index].isTensor() || !stack[index].toTensor().defined()) return std::nullopt;
  return stack[index].toTensor();
}

// The CPU's kernels take statistics in the type of the input alone; CUDA's compute in 32 bits as well.
at::Tensor wide(const at::Tensor& tensor) { return has_16_bits(tensor) ? tensor.to(at::kFloat) : tensor; }
std::optional<at::Tensor> wide(const std::optional<at::Tensor>& tensor) {
  return tensor ? std::make_optional(wide(*tensor)) : std::nullopt;
}

at::Tensor in_type_of(const at::Tensor& gradient, const std::optional<at::Tensor>& of) {
  return gradient.defined() && of ? gradient.to(of->scalar_type()) : gradient;
}

std::array<bool, 3> mask_at(const Stack& stack, size_t index) {
  auto list = stack[index].toBoolList();
  return {list.get(0), list.get(1), list.get(2)};
}

}  // namespace

// native_layer_norm_backward(grad_out, input, normalized_shape, mean, rstd, weight, bias, output_mask)
void layer_norm_backward(Stack& stack, uint64_t) {
  auto gradient = stack[0].toTensor(), input = stack[1].toTensor();
  auto mean = stack[3].toTensor(), deviation = stack[4].toTensor();
  auto weight = optional_at(stack, 5), bias = optional_at(stack, 6);
  auto shape = stack[2].toIntVector();
  auto mask = mask_at(stack, 7);
  auto [to_input, to_weight, to_bias] = at::native_layer_norm_backward(
      wide(gradient), wide(input), shape, wide(mean), wide(deviation), wide(weight), wide(bias), mask);
  stack = {in_type_of(to_input, input), in_type_of(to_weight, weight), in_type_of(to_bias, bias)};
}

// native_batch_norm_backward(grad_out, input, weight, running_mean, running_var, save_mean, save_invstd, train, eps,
//                            output_mask)
void batch_norm_backward(Stack& stack, uint64_t) {
  auto gradient = stack[0].toTensor(), input = stack[1].toTensor();
  auto weight = optional_at(stack, 2);
  auto mask = mask_at(stack, 9);
  auto [to_input, to_weight, to_bias] = at::native_batch_norm_backward(
      wide(gradient), wide(input), wide(weight), wide(optional_at(stack, 3)), wide(optional_at(stack, 4)),
      wide(optional_at(stack, 5)), wide(optional_at(stack, 6)), stack[7].toBool(), stack[8].toDouble(), mask);
  stack = {in_type_of(to_input, input), in_type_of(to_weight, weight), in_type_of(to_bias, weight)};
}

}  // namespace halstream_torch
