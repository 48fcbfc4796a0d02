#include "inference.h"

#include "layouts.h"
#include "shapes.h"
#include "unsupported.h"

#include <ATen/EmptyTensor.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <c10/core/DefaultDtype.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <cstring>

namespace halstream_torch {

namespace {

at::Tensor zeros_of(const at::Tensor& tensor) {
  at::Tensor zeros = at::detail::empty_cpu(tensor.sizes(), tensor.scalar_type());
  if (zeros.numel() != 0) std::memset(zeros.mutable_data_ptr(), 0, zeros.nbytes());
  return zeros;
}

at::Tensor meta_of(const at::Tensor& tensor, bool on_cpu) {
  // A CPU tensor of no dimensions takes part as a number, with its own rules of type promotion.
  if (!tensor.defined() || (tensor.device().is_cpu() && tensor.dim() == 0)) return tensor;
  if (on_cpu) return zeros_of(tensor);
  // For results that are strided a sparse argument counts as a strided one.
  if (!is_plain(tensor)) return at::detail::empty_meta(tensor.sizes(), tensor.scalar_type());
  at::Tensor meta = at::detail::empty_strided_meta(tensor.sizes(), tensor.strides(), tensor.scalar_type());
  auto* impl = meta.unsafeGetTensorImpl();
  if (tensor.unsafeGetTensorImpl()->is_wrapped_number()) impl->set_wrapped_number(true);
  if (tensor.is_conj()) impl->_set_conj(true);
  if (tensor.is_neg()) impl->_set_neg(true);
  return meta;
}

c10::IValue meta_value(const c10::IValue& value, bool on_cpu) {
  if (value.isTensor()) return meta_of(value.toTensor(), on_cpu);
  if (value.isGenerator()) return {};
  if (value.isDevice() && value.toDevice().is_cuda()) return c10::Device(c10::DeviceType::Meta);
  if (value.isTensorList()) {
    c10::List<at::Tensor> list;
    for (const auto& item : value.toListRef()) list.push_back(meta_of(item.toTensor(), on_cpu));
    return list;
  }
  if (value.isOptionalTensorList()) {
    c10::List<std::optional<at::Tensor>> list;
    for (const auto& item : value.toListRef()) {
      list.push_back(item.isNone() ? std::nullopt : std::make_optional(meta_of(item.toTensor(), on_cpu)));
    }
    return list;
  }
  return value;
}

void add_output(Metadata& metadata, const at::Tensor& tensor) {
  if (!tensor.defined()) {
    metadata.outputs.push_back({{}, {}, c10::ScalarType::Float, false, 0});
    return;
  }
  TORCH_CHECK_NOT_IMPLEMENTED(
      tensor.layout() == c10::kStrided, "a result of layout ", tensor.layout(), " is not supported on halstream's CUDA device",
      kExplanation);
  Metadata::Output output{{}, {}, tensor.scalar_type(), true, 0};
  output.sizes.append(tensor.sizes().begin(), tensor.sizes().end());
  output.strides.append(tensor.strides().begin(), tensor.strides().end());
  output.bytes = at::detail::computeStorageNbytes(tensor.sizes(), tensor.strides(), tensor.element_size());
  metadata.outputs.push_back(std::move(output));
}

void call_on(Stack& stack, const Operator& op, c10::ArrayRef<c10::IValue> arguments, bool on_cpu) {
  stack.reserve(arguments.size());
  for (const auto& value : arguments) stack.push_back(meta_value(value, on_cpu));
  // A mode that the program has set (a TorchDispatchMode) saw the operator already.
  c10::impl::ExcludeDispatchKeyGuard without_modes(c10::python_ks);
  at::AutoDispatchBelowADInplaceOrView without_autograd;
  if (op.substitute != nullptr) {
    op.substitute(stack, 0);
  } else if (const auto* shapes = on_cpu ? nullptr : shapes_of(op.handle)) {
    shapes->callBoxed(op.handle, c10::DispatchKeySet(c10::DispatchKey::Meta), &stack);
  } else {
    op.handle.callBoxed(stack);
  }
}

// Raises what the CPU kernel says about tensors of these sizes and types: its texts are those of CUDA's kernels,
// unlike those of the meta functions in Python.
void raise_error_of_kernel(const Operator& op, c10::ArrayRef<c10::IValue> arguments) {
  if (op.random) return;
  Stack stack;
  try {
    call_on(stack, op, arguments, true);
  } catch (const c10::LinAlgError&) {
    return;  // about the zeros that stand for the values
  }
}

// Meta kernels accept floating-point tensors of different types where the kernels of CUDA and of the CPU refuse.
bool mixes_types(const Operator& op, c10::ArrayRef<c10::IValue> arguments) {
  if (op.pointwise) return false;
  auto first = c10::ScalarType::Undefined;
  bool mixed = false;
  auto look = [&](const c10::IValue& value) {
    if (!value.isTensor() || !value.toTensor().defined() || !value.toTensor().is_floating_point()) return;
    auto type = value.toTensor().scalar_type();
    mixed = mixed || first != c10::ScalarType::Undefined && first != type;
    first = type;
  };
  for (const auto& value : arguments) {
    if (value.isList()) {
      for (const auto& item : value.toListRef()) look(item);
    } else {
      look(value);
    }
  }
  return mixed;
}

}  // namespace

std::shared_ptr<const Metadata> infer(const Operator& op, c10::ArrayRef<c10::IValue> arguments) {
  auto metadata = std::make_shared<Metadata>();
  Stack stack;
  try {
    call_on(stack, op, arguments, op.shapes_from_cpu);
    for (const auto& value : stack) {
      if (value.isTensor()) {
        metadata->lengths.push_back(-1);
        add_output(*metadata, value.toTensor());
      } else if (value.isTensorList()) {
        auto items = value.toListRef();
        metadata->lengths.push_back(static_cast<int>(items.size()));
        for (const auto& item : items) add_output(*metadata, item.toTensor());
      } else if (op.substitute != nullptr && value.isInt()) {
        metadata->lengths.push_back(Metadata::number);
        metadata->numbers.push_back(value);
      } else {
        metadata->known = false;
      }
    }
  } catch (const c10::NotImplementedError&) {
    metadata->known = false;
  } catch (const c10::Error&) {
    throw;
  } catch (const std::exception&) {
    // A meta function in Python that needs values, that is stricter than the kernels, or that found an error.
    metadata->known = false;
    metadata->raised = true;
  }
  if (metadata->raised || mixes_types(op, arguments)) raise_error_of_kernel(op, arguments);
  if (!metadata->known) {
    metadata->outputs.clear();
    metadata->lengths.clear();
    metadata->numbers.clear();
  }
  return metadata;
}

}  // namespace halstream_torch
