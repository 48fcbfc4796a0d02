#include "direct.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/Tensor.h>

#include <unordered_map>

#include "ATen/Parallel.h"
#include "ATen/ops/add.h"
#include "ATen/ops/clamp_min.h"
#include "ATen/ops/mul.h"
#include "ATen/ops/sqrt.h"

namespace halstream_torch {

namespace {

constexpr int64_t elements_of_a_thread = 32768;

// result = (input * mask) * scale, as the CPU's kernels compute it, in one pass.
template <class Number>
void masked_and_scaled(const at::Tensor& input, const at::Tensor& mask, double by, const at::Tensor& result) {
  const auto* from = input.const_data_ptr<Number>();
  const auto* keeps = reinterpret_cast<const uint8_t*>(mask.const_data_ptr());
  auto* to = result.mutable_data_ptr<Number>();
  auto scale = static_cast<Number>(by);
  at::parallel_for(0, input.numel(), elements_of_a_thread, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) to[i] = from[i] * static_cast<Number>(keeps[i]) * scale;
  });
}

void mask_and_scale(const at::Tensor& input, const at::Tensor& mask, double scale, at::Tensor& result) {
  bool simple = mask.scalar_type() == at::kBool && input.scalar_type() == result.scalar_type() &&
      input.is_non_overlapping_and_dense() && input.sizes() == mask.sizes() && input.sizes() == result.sizes() &&
      input.strides() == mask.strides() && input.strides() == result.strides();
  if (simple && input.scalar_type() == at::kFloat) {
    masked_and_scaled<float>(input, mask, scale, result);
  } else if (simple && input.scalar_type() == at::kDouble) {
    masked_and_scaled<double>(input, mask, scale, result);
  } else {
    result.copy_(input.mul(mask).mul(scale));  // mul_ rounds the scale to 16 bits, too
  }
}

// native_dropout(input, p, train) -> (output, mask)
void native_dropout(Stack& arguments, Outputs& results, uint64_t seed) {
  const auto& input = arguments[0].toTensor();
  auto& mask = results[1];
  auto p = arguments[1].toDouble();
  bool train = arguments[2].isNone() || arguments[2].toBool();
  if (!train || p == 0) {
    mask.fill_(true);
    results[0].copy_(input);
  } else if (p == 1) {
    mask.fill_(false);
    results[0].zero_();
  } else {
    mask.bernoulli_(1 - p, at::detail::createCPUGenerator(seed));
    mask_and_scale(input, mask, 1 / (1 - p), results[0]);
  }
}

// native_dropout_backward(grad_output, mask, scale)
void native_dropout_backward(Stack& arguments, Outputs& results, uint64_t) {
  mask_and_scale(arguments[0].toTensor(), arguments[1].toTensor(), arguments[2].toDouble(), results[0]);
}

// clone(self, *, memory_format): the result has the layout already.
void clone(Stack& arguments, Outputs& results, uint64_t) { results[0].copy_(arguments[0].toTensor()); }

void relu(Stack& arguments, Outputs& results, uint64_t) {
  at::clamp_min_out(results[0], arguments[0].toTensor(), 0);
}

// select_backward(grad_output, input_sizes, dim, index)
void select_backward(Stack& arguments, Outputs& results, uint64_t) {
  results[0].zero_().select(arguments[2].toInt(), arguments[3].toInt()).copy_(arguments[0].toTensor());
}

// slice_backward(grad_output, input_sizes, dim, start, end, step)
void slice_backward(Stack& arguments, Outputs& results, uint64_t) {
  results[0]
      .zero_()
      .slice(arguments[2].toInt(), arguments[3].toInt(), arguments[4].toInt(), arguments[5].toInt())
      .copy_(arguments[0].toTensor());
}

void foreach_sqrt(Stack& arguments, Outputs& results, uint64_t) {
  auto self = arguments[0].toTensorVector();
  for (size_t i = 0; i < self.size(); i++) at::sqrt_out(results[i], self[i]);
}

// _foreach_add.List(self, other, *, alpha)
void foreach_add(Stack& arguments, Outputs& results, uint64_t) {
  auto self = arguments[0].toTensorVector(), other = arguments[1].toTensorVector();
  auto alpha = arguments[2].toScalar();
  for (size_t i = 0; i < self.size(); i++) {
    if (at::isReducedFloatingType(results[i].scalar_type())) {
      results[i].copy_(self[i].add(other[i], alpha));  // as the numbers are rounded there
    } else {
      at::add_out(results[i], self[i], other[i], alpha);
    }
  }
}

const std::unordered_map<std::string, Direct>& direct_functions() {
  static const auto* all = new std::unordered_map<std::string, Direct>{
      {"aten::native_dropout", &native_dropout},
      {"aten::native_dropout_backward", &native_dropout_backward},
      {"aten::clone", &clone},
      {"aten::relu", &relu},
      {"aten::select_backward", &select_backward},
      {"aten::slice_backward", &slice_backward},
      {"aten::_foreach_sqrt", &foreach_sqrt},
      {"aten::_foreach_add.List", &foreach_add},
  };
  return *all;
}

}  // namespace

Direct direct_of(const c10::OperatorHandle& op) {
  const auto& overload = op.schema().overload_name();
  auto found = direct_functions().find(overload.empty() ? op.schema().name() : op.schema().name() + "." + overload);
  return found != direct_functions().end() ? found->second : nullptr;
}

}  // namespace halstream_torch
