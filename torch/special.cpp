// Kernels that are no calculation: factories, sizes, copies, record_stream.
#include "allocator.h"
#include "attention.h"
#include "copies.h"
#include "takeover.h"
#include "tensors.h"
#include "unsupported.h"

#include "ATen/native/ResizeCommon.h"
#include "ATen/native/TensorFactories.h"
#include "ATen/native/transformers/attention.h"
#include "ATen/ops/convolution.h"

#include <ATen/EmptyTensor.h>
#include <c10/core/DefaultDtype.h>
#include <c10/util/Exception.h>
#include <torch/library.h>

namespace halstream_torch {

namespace {

c10::ScalarType or_default(std::optional<c10::ScalarType> dtype) {
  return dtype ? *dtype : c10::get_default_dtype_as_scalartype();
}

DeviceIndex or_current(std::optional<c10::Device> device) {
  return device ? resolve_device(device->index()) : current_device();
}

void check_options(std::optional<c10::Layout> layout, std::optional<bool> pin_memory) {
  TORCH_CHECK_NOT_IMPLEMENTED(
      !layout || *layout == c10::kStrided, "tensors of layout ", layout.value_or(c10::kStrided),
      " are not supported on halstream's CUDA device", kExplanation);
  TORCH_CHECK(!pin_memory.value_or(false), "Only dense CPU tensors can be pinned");
}

// Whether new memory is filled, by a kernel on the current stream: torch.use_deterministic_algorithms.
bool fills_new_memory() {
  auto& context = at::globalContext();
  return context.deterministicAlgorithms() && context.deterministicFillUninitializedMemory();
}

at::Tensor filled_if_asked(at::Tensor tensor) {
  if (fills_new_memory()) at::native::fill_empty_deterministic_(tensor);
  return tensor;
}

at::Tensor empty_memory_format(
    c10::SymIntArrayRef sizes, std::optional<c10::ScalarType> dtype, std::optional<c10::Layout> layout,
    std::optional<c10::Device> device, std::optional<bool> pin_memory, std::optional<c10::MemoryFormat> format) {
  check_options(layout, pin_memory);
  DeviceScope scope(or_current(device));
  return filled_if_asked(empty(C10_AS_INTARRAYREF_SLOW(sizes), or_default(dtype), format));
}

at::Tensor empty_strided_symint(
    c10::SymIntArrayRef sizes, c10::SymIntArrayRef strides, std::optional<c10::ScalarType> dtype,
    std::optional<c10::Layout> layout, std::optional<c10::Device> device, std::optional<bool> pin_memory) {
  check_options(layout, pin_memory);
  DeviceScope scope(or_current(device));
  return filled_if_asked(
      empty_strided(C10_AS_INTARRAYREF_SLOW(sizes), C10_AS_INTARRAYREF_SLOW(strides), or_default(dtype)));
}

const at::Tensor& resize_(
    const at::Tensor& self, c10::SymIntArrayRef sizes, std::optional<c10::MemoryFormat> format) {
  auto bytes_before = static_cast<int64_t>(self.storage().nbytes());
  resize_tensor(self, C10_AS_INTARRAYREF_SLOW(sizes));
  if (format) {
    TORCH_CHECK(*format != c10::MemoryFormat::Preserve, "Unsupported memory format", *format);
    self.unsafeGetTensorImpl()->empty_tensor_restride(*format);
  }
  if (fills_new_memory()) at::native::fill_resize_deterministic_(self, bytes_before);
  return self;
}

at::Tensor& set_source_storage_offset(
    at::Tensor& self, c10::Storage source, c10::SymInt offset, c10::SymIntArrayRef sizes,
    c10::SymIntArrayRef strides) {
  return set_storage(
      self, std::move(source), offset.guard_int(__FILE__, __LINE__), C10_AS_INTARRAYREF_SLOW(sizes),
      C10_AS_INTARRAYREF_SLOW(strides));
}

at::Tensor& set_empty(at::Tensor& self) {
  auto dtype = self.dtype();
  c10::Storage storage(c10::Storage::use_byte_size_t(), 0, &device_allocator(), true);
  set_storage(self, std::move(storage), 0, {0}, {});
  TORCH_INTERNAL_ASSERT(dtype == self.dtype());
  return self;
}

void record_stream_of(at::Tensor& self, c10::Stream stream) { record_stream(self.storage().data_ptr(), stream); }

// cuDNN's convolutions as torch's own: `benchmark`, `deterministic` and `allow_tf32` choose among cuDNN's algorithms.
at::Tensor cudnn_convolution(
    const at::Tensor& self, const at::Tensor& weight, c10::SymIntArrayRef padding, c10::SymIntArrayRef stride,
    c10::SymIntArrayRef dilation, c10::SymInt groups, bool, bool, bool) {
  c10::SmallVector<c10::SymInt, 3> none(padding.size(), 0);
  return at::convolution_symint(self, weight, {}, stride, padding, dilation, false, none, std::move(groups));
}

at::Tensor cudnn_convolution_transpose(
    const at::Tensor& self, const at::Tensor& weight, c10::SymIntArrayRef padding, c10::SymIntArrayRef output_padding,
    c10::SymIntArrayRef stride, c10::SymIntArrayRef dilation, c10::SymInt groups, bool, bool, bool) {
  return at::convolution_symint(
      self, weight, {}, stride, padding, dilation, true, output_padding, std::move(groups));
}

}  // namespace

size_t install_special_kernels() {
  // The public function asks this table, and CUDA's own entry asks the driver.
  at::native::_fused_sdp_choice_stub.set_cuda_dispatch_ptr(&choose_attention);
  static auto* library = new torch::Library(
      torch::Library::IMPL, "aten", std::make_optional(c10::DispatchKey::CUDA), __FILE__, __LINE__);
  library->impl("empty.memory_format", TORCH_FN(empty_memory_format));
  library->impl("empty_strided", TORCH_FN(empty_strided_symint));
  library->impl("resize_", TORCH_FN(resize_));
  library->impl("set_.source_Storage_storage_offset", TORCH_FN(set_source_storage_offset));
  library->impl("set_", TORCH_FN(set_empty));
  library->impl("record_stream", TORCH_FN(record_stream_of));
  library->impl("copy_", TORCH_FN(copy_));
  library->impl("_fused_sdp_choice", TORCH_FN(choose_attention));
  static auto* quantized = new torch::Library(
      torch::Library::IMPL, "aten", std::make_optional(c10::DispatchKey::QuantizedCUDA), __FILE__, __LINE__);
  quantized->impl("copy_", TORCH_FN(copy_quantized));
  library->impl("cudnn_convolution", TORCH_FN(cudnn_convolution));
  library->impl("cudnn_convolution_transpose", TORCH_FN(cudnn_convolution_transpose));
  return 10;
}

}  // namespace halstream_torch
