// Sizes, strides and types of an operator's results, by torch's meta kernels.
#pragma once

#include "operators.h"

namespace halstream_torch {

// Runs the meta kernel on tensors without data. Raises what the kernel raises about shapes and types.
std::shared_ptr<const Metadata> infer(const Operator& op, c10::ArrayRef<c10::IValue> arguments);

}  // namespace halstream_torch
