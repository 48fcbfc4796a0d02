#include "layouts.h"

#include "unsupported.h"

#include "ATen/NestedTensorImpl.h"
#include "ATen/SparseCsrTensorImpl.h"
#include "ATen/SparseTensorImpl.h"
#include "ATen/quantized/QTensorImpl.h"
#include "ATen/quantized/Quantizer.h"

#include <unordered_set>

namespace halstream_torch {

namespace {

using c10::DispatchKey;

bool is_compressed(const at::Tensor& tensor) {
  auto layout = tensor.layout();
  return layout == c10::kSparseCsr || layout == c10::kSparseCsc || layout == c10::kSparseBsr ||
      layout == c10::kSparseBsc;
}

template <class Impl>
Impl* impl_of(const at::Tensor& tensor) {
  return static_cast<Impl*>(tensor.unsafeGetTensorImpl());
}

c10::DispatchKeySet key_for(const at::Device& device, DispatchKey cpu, DispatchKey cuda) {
  return c10::DispatchKeySet(device.is_cuda() ? cuda : cpu);
}

// The integers that a quantized tensor stores.
at::Tensor integers_of(const at::Tensor& tensor) {
  auto device = tensor.device();
  auto integers = c10::make_intrusive<c10::TensorImpl>(
      c10::Storage(tensor.storage()), key_for(device, DispatchKey::CPU, DispatchKey::CUDA),
      c10::scalarTypeToTypeMeta(c10::toUnderlying(tensor.scalar_type())));
  integers->set_storage_offset(tensor.storage_offset());
  integers->set_sizes_and_strides(tensor.sizes(), tensor.strides());
  return at::Tensor(std::move(integers));
}

const at::PerChannelAffineQuantizer* by_channels(const at::Tensor& tensor) {
  return dynamic_cast<const at::PerChannelAffineQuantizer*>(impl_of<at::QTensorImpl>(tensor)->quantizer().get());
}

at::Tensor assemble_quantized(const at::Tensor& like, const Parts& parts) {
  auto quantizer = impl_of<at::QTensorImpl>(like)->quantizer();
  if (const auto* channels = by_channels(like)) {
    quantizer = at::make_per_channel_affine_quantizer(parts[1], parts[2], channels->axis(), like.scalar_type());
  }
  auto impl = c10::make_intrusive<at::QTensorImpl>(
      c10::Storage(parts[0].storage()),
      key_for(parts[0].device(), DispatchKey::QuantizedCPU, DispatchKey::QuantizedCUDA), like.dtype(),
      std::move(quantizer));
  impl->set_storage_offset(parts[0].storage_offset());
  impl->set_sizes_and_strides(parts[0].sizes(), parts[0].strides());
  return at::Tensor(std::move(impl));
}

at::Tensor assemble_compressed(const at::Tensor& like, const Parts& parts) {
  auto impl = c10::make_intrusive<at::SparseCsrTensorImpl>(
      key_for(parts[0].device(), DispatchKey::SparseCsrCPU, DispatchKey::SparseCsrCUDA), parts[0].device(),
      like.layout(), like.dtype());
  impl->set_member_tensors(parts[0], parts[1], parts[2], like.sizes());
  return at::Tensor(std::move(impl));
}

at::Tensor assemble_coordinates(const at::Tensor& like, const Parts& parts) {
  const auto* from = impl_of<at::SparseTensorImpl>(like);
  auto impl = c10::make_intrusive<at::SparseTensorImpl>(
      key_for(parts[0].device(), DispatchKey::SparseCPU, DispatchKey::SparseCUDA), like.dtype());
  impl->raw_resize_(from->sparse_dim(), from->dense_dim(), like.sizes());
  impl->set_indices_and_values_unsafe(parts[0], parts[1]);
  impl->set_coalesced(from->coalesced());
  return at::Tensor(std::move(impl));
}

using Names = std::unordered_set<std::string>;

const Names& coordinates() {
  static const auto* names = new Names{
      "aten::add.out", "aten::bmm", "aten::bmm.out", "aten::_sparse_sparse_matmul", "aten::mul.out",
      "aten::sspaddmm.out", "aten::_sparse_sum_backward", "aten::_sparse_softmax",
      "aten::_sparse_softmax_backward_data", "aten::_sparse_log_softmax", "aten::_sparse_log_softmax_backward_data",
      "aten::addmm.out", "aten::addmm", "aten::addmm_", "aten::_coalesce", "aten::hspmm.out", "aten::hspmm",
      "aten::index_select", "aten::sparse_mask", "aten::_sparse_mask_projection"};
  return *names;
}

const Names& compressed() {
  static const auto* names = new Names{
      "aten::add.out", "aten::addmv.out", "aten::_sparse_csr_sum.dim_dtype", "aten::_sparse_csr_prod.dim_dtype",
      "aten::sparse_sampled_addmm.out", "aten::sparse_sampled_addmm", "aten::addmm.out", "aten::triangular_solve.X",
      "aten::baddbmm.out", "aten::bmm.out", "aten::_spsolve", "aten::_to_sparse", "aten::_to_sparse.sparse_dim",
      "aten::_to_sparse_csr", "aten::_to_sparse_csc", "aten::_to_sparse_bsr", "aten::_to_sparse_bsc"};
  return *names;
}

const Names& nested() {
  static const auto* names = new Names{
      "aten::bmm", "aten::_transform_bias_rescale_qkv", "aten::to_padded_tensor",
      "aten::_nested_tensor_softmax_with_shape", "aten::_native_multi_head_attention", "aten::native_layer_norm",
      "aten::native_layer_norm_backward", "aten::add.Tensor", "aten::add_.Tensor", "aten::mul.Tensor",
      "aten::mul_.Tensor", "aten::_scaled_dot_product_flash_attention",
      "aten::_scaled_dot_product_flash_attention_backward", "aten::_scaled_dot_product_efficient_attention",
      "aten::_scaled_dot_product_cudnn_attention", "aten::_scaled_dot_product_cudnn_attention_backward"};
  return *names;
}

const Names& quantized() {
  static const auto* names = new Names{
      "aten::_index_put_impl_", "aten::quantized_max_pool2d", "aten::relu", "aten::relu_", "aten::gelu",
      "aten::int_repr", "aten::masked_fill_.Scalar", "aten::masked_fill_.Tensor", "aten::index_select.out",
      "aten::index_select", "aten::_adaptive_avg_pool2d", "aten::dequantize.self", "aten::flip", "aten::clone"};
  return *names;
}

}  // namespace

bool is_plain(const at::Tensor& tensor) {
  return tensor.layout() == c10::kStrided && !tensor.is_nested() && !tensor.is_quantized();
}

Parts parts_of(const at::Tensor& tensor) {
  if (tensor.is_nested()) return {at::native::get_nested_tensor_impl(tensor)->get_unsafe_storage_as_tensor()};
  if (tensor.is_quantized()) {
    if (const auto* channels = by_channels(tensor)) {
      return {integers_of(tensor), channels->scales(), channels->zero_points()};
    }
    return {integers_of(tensor)};
  }
  if (is_compressed(tensor)) {
    const auto* impl = impl_of<at::SparseCsrTensorImpl>(tensor);
    return {impl->compressed_indices(), impl->plain_indices(), impl->values()};
  }
  TORCH_CHECK_NOT_IMPLEMENTED(
      tensor.layout() == c10::kSparse, "a tensor of layout ", tensor.layout(),
      " is not supported on halstream's CUDA device; use a dense tensor, or the CPU", kExplanation);
  const auto* impl = impl_of<at::SparseTensorImpl>(tensor);
  return {impl->indices(), impl->values()};
}

at::Tensor assemble(const at::Tensor& like, const Parts& parts) {
  if (like.is_quantized()) return assemble_quantized(like, parts);
  if (is_compressed(like)) return assemble_compressed(like, parts);
  if (!like.is_nested()) return assemble_coordinates(like, parts);
  const auto* from = at::native::get_nested_tensor_impl(like);
  return at::detail::make_tensor<at::native::NestedTensorImpl>(
      parts[0], from->get_nested_sizes(), from->get_nested_strides(), from->get_storage_offsets());
}

void take_parts(
    const at::Tensor& tensor, const at::Tensor& alias, c10::function_ref<at::Tensor(const at::Tensor&)> put) {
  if (tensor.is_nested() || tensor.is_quantized()) return;  // written where they are
  auto parts = parts_of(alias);
  auto before = parts_of(tensor);
  for (size_t i = 0; i < parts.size(); i++) {
    bool in_place = parts[i].sizes() == before[i].sizes() && parts[i].scalar_type() == before[i].scalar_type() &&
        parts[i].unsafeGetTensorImpl()->data() == before[i].unsafeGetTensorImpl()->data();
    parts[i] = in_place ? before[i] : put(parts[i]);
  }
  if (is_compressed(tensor)) {
    impl_of<at::SparseCsrTensorImpl>(tensor)->set_member_tensors(parts[0], parts[1], parts[2], alias.sizes());
    return;
  }
  const auto* from = impl_of<at::SparseTensorImpl>(alias);
  auto* to = impl_of<at::SparseTensorImpl>(tensor);
  to->raw_resize_(from->sparse_dim(), from->dense_dim(), alias.sizes());
  to->set_indices_and_values_unsafe(parts[0], parts[1]);
  to->set_coalesced(from->coalesced());
}

void take_quantizer(const at::Tensor& tensor, const at::Tensor& source) {
  if (by_channels(source) != nullptr) return;  // its scales are parts
  impl_of<at::QTensorImpl>(tensor)->set_quantizer_(impl_of<at::QTensorImpl>(source)->quantizer());
}

bool has_kernel_for_gpus(DispatchKey key, const std::string& operator_name) {
  switch (key) {
    case DispatchKey::SparseCUDA: return coordinates().count(operator_name) != 0;
    case DispatchKey::SparseCsrCUDA: return compressed().count(operator_name) != 0;
    case DispatchKey::NestedTensorCUDA: return nested().count(operator_name) != 0;
    default: return quantized().count(operator_name) != 0;
  }
}

DispatchKey cpu_key(DispatchKey key) {
  switch (key) {
    case DispatchKey::SparseCUDA: return DispatchKey::SparseCPU;
    case DispatchKey::SparseCsrCUDA: return DispatchKey::SparseCsrCPU;
    case DispatchKey::NestedTensorCUDA: return DispatchKey::NestedTensorCPU;
    default: return DispatchKey::QuantizedCPU;
  }
}

}  // namespace halstream_torch
