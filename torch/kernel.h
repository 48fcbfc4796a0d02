// The one kernel that stands for every operator on CUDA tensors.
#pragma once

#include "operators.h"

namespace halstream_torch {

class Kernel final : public c10::OperatorKernel {
 public:
  explicit Kernel(std::unique_ptr<Operator> op) : op_(std::move(op)) {}
  void operator()(const c10::OperatorHandle& handle, c10::DispatchKeySet keys, Stack* stack);

 private:
  std::unique_ptr<Operator> op_;
};

}  // namespace halstream_torch
