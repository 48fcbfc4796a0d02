#include "substitutes.h"

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

const std::unordered_map<std::string, Substitute>& table() {
  static const auto* all = new std::unordered_map<std::string, Substitute>{
      {"aten::native_dropout", &native_dropout},
      {"aten::_masked_scale", &masked_scale},
  };
  return *all;
}

}  // namespace

Substitute substitute_of(const c10::OperatorHandle& op) {
  auto found = table().find(op.schema().name());
  return found != table().end() && op.schema().overload_name().empty() ? found->second : nullptr;
}

}  // namespace halstream_torch
