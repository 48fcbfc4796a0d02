#include "sync_batch_norm.h"

#include <ATen/core/Tensor.h>

namespace halstream_torch {

namespace {

at::Tensor optional_tensor(const c10::IValue& value) { return value.isTensor() ? value.toTensor() : at::Tensor(); }

c10::ScalarType statistics_type(c10::ScalarType type) { return type == at::kDouble ? at::kDouble : at::kFloat; }

// All dimensions but that of the channels.
std::vector<int64_t> others(const at::Tensor& input) {
  std::vector<int64_t> dimensions{0};
  for (int64_t i = 2; i < input.dim(); i++) dimensions.push_back(i);
  return dimensions;
}

// One number for each channel, in the shape that the input is combined with.
at::Tensor along(const at::Tensor& channels, const at::Tensor& input) {
  std::vector<int64_t> sizes(input.dim(), 1);
  sizes[1] = -1;
  return channels.view(sizes);
}

}  // namespace

// batch_norm_stats(input, eps) -> (mean, invstd)
void batch_norm_stats(Stack& stack, uint64_t) {
  auto input = stack[0].toTensor();
  auto x = input.to(statistics_type(input.scalar_type()));
  auto dimensions = others(x);
  auto mean = x.mean(dimensions);
  auto variance = x.sub(along(mean, x)).square().mean(dimensions);
  stack = {mean, variance.add(stack[1].toDouble()).rsqrt()};
}

// batch_norm_gather_stats_with_counts(input, mean, invstd, running_mean, running_var, momentum, eps, counts)
void batch_norm_gather_stats(Stack& stack, uint64_t) {
  auto mean = stack[1].toTensor(), invstd = stack[2].toTensor();
  auto running_mean = optional_tensor(stack[3]), running_var = optional_tensor(stack[4]);
  auto momentum = stack[5].toDouble(), eps = stack[6].toDouble();
  auto type = statistics_type(mean.scalar_type());
  mean = mean.to(type);
  auto counts = stack[7].isTensor() ? stack[7].toTensor().to(type).view({-1, 1})
                                    : at::Tensor(mean.new_empty({mean.size(0), 1})).fill_(stack[7].toInt());
  auto total = counts.sum();
  auto all = mean.mul(counts).sum(0).div(total);
  auto variances = invstd.to(type).square().reciprocal().sub(eps);
  auto variance = variances.add(mean.sub(all).square()).mul(counts).sum(0).div(total);
  if (running_mean.defined()) running_mean.mul_(1 - momentum).add_(all.to(running_mean.scalar_type()), momentum);
  if (running_var.defined()) {
    auto unbiased = variance.mul(total).div(total.sub(1));
    running_var.mul_(1 - momentum).add_(unbiased.to(running_var.scalar_type()), momentum);
  }
  stack = {all, variance.add(eps).rsqrt()};
}

// batch_norm_elemt(input, weight, bias, mean, invstd, eps)
void batch_norm_elemt(Stack& stack, uint64_t) {
  auto input = stack[0].toTensor();
  auto weight = optional_tensor(stack[1]), bias = optional_tensor(stack[2]);
  auto factor = stack[4].toTensor();
  if (weight.defined()) factor = factor.mul(weight);
  auto result = input.sub(along(stack[3].toTensor(), input)).mul(along(factor, input));
  if (bias.defined()) result = result.add(along(bias, input));
  stack = {result.to(input.scalar_type())};
}

// batch_norm_backward_reduce(grad_out, input, mean, invstd, weight, input_g, weight_g, bias_g)
//     -> (sum_dy, sum_dy_xmu, grad_weight, grad_bias)
void batch_norm_backward_reduce(Stack& stack, uint64_t) {
  auto input = stack[1].toTensor(), mean = stack[2].toTensor(), invstd = stack[3].toTensor();
  auto weight = optional_tensor(stack[4]);
  auto dy = stack[0].toTensor().to(mean.scalar_type());
  auto dimensions = others(input);
  auto sum_dy = dy.sum(dimensions);
  auto sum_dy_xmu = dy.mul(input.sub(along(mean, input))).sum(dimensions);
  auto type = weight.defined() ? weight.scalar_type() : mean.scalar_type();
  at::Tensor grad_weight, grad_bias;
  if (stack[6].toBool()) grad_weight = sum_dy_xmu.mul(invstd).to(type);
  if (stack[7].toBool()) grad_bias = sum_dy.to(type, /*non_blocking=*/false, /*copy=*/true);
  bool wanted = stack[5].toBool();
  stack = {wanted ? sum_dy : at::Tensor(), wanted ? sum_dy_xmu : at::Tensor(), grad_weight, grad_bias};
}

// batch_norm_backward_elemt(grad_out, input, mean, invstd, weight, sum_dy, sum_dy_xmu, count)
void batch_norm_backward_elemt(Stack& stack, uint64_t) {
  auto dy = stack[0].toTensor(), input = stack[1].toTensor(), mean = stack[2].toTensor(), invstd = stack[3].toTensor();
  auto weight = optional_tensor(stack[4]);
  auto total = stack[7].toTensor().sum().to(mean.scalar_type());
  auto mean_dy = stack[5].toTensor().div(total);
  auto slope = stack[6].toTensor().div(total).mul(invstd.square());
  auto factor = weight.defined() ? invstd.mul(weight) : invstd;
  auto result = dy.sub(along(mean_dy, input)).sub(input.sub(along(mean, input)).mul(along(slope, input)));
  stack = {result.mul(along(factor, input)).to(input.scalar_type())};
}

}  // namespace halstream_torch
