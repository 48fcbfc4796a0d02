#include "tensors.h"

#include "allocator.h"

#include <ATen/EmptyTensor.h>
#include <ATen/native/Resize.h>
#include <c10/core/StorageImpl.h>

namespace halstream_torch {

namespace {

constexpr c10::DispatchKeySet cuda_keys(c10::DispatchKey::CUDA);

// Makes room for `bytes` bytes in the storage, keeping what it holds, in the order of the current stream.
void grow(const c10::Storage& storage, size_t bytes) {
  auto before = storage.nbytes();
  if (bytes <= before) return;
  TORCH_CHECK(storage.resizable(), "Trying to resize storage that is not resizable");
  DeviceScope scope(storage.device().index());
  auto data = device_allocator().allocate(bytes);
  if (before != 0) {
    check(core->copy(
        current_stream(storage.device().index()), reinterpret_cast<uint64_t>(data.get()),
        reinterpret_cast<uint64_t>(storage.data()), before));
  }
  storage.set_data_ptr_noswap(std::move(data));
  storage.set_nbytes(bytes);
}

void set_sizes(
    c10::TensorImpl* tensor, at::IntArrayRef sizes, std::optional<at::IntArrayRef> strides) {
  if (tensor->sizes() == sizes && (!strides || tensor->strides() == *strides)) return;
  size_t bytes = 0;
  auto item = tensor->dtype().itemsize();
  if (strides) {
    bytes = at::detail::computeStorageNbytes(sizes, *strides, item, tensor->storage_offset());
    tensor->set_sizes_and_strides(sizes, *strides);
  } else {
    bytes = at::detail::computeStorageNbytesContiguous(sizes, item, tensor->storage_offset());
    tensor->set_sizes_contiguous(sizes);
  }
  if (tensor->numel() != 0) grow(tensor->storage(), bytes);
}

}  // namespace

at::Tensor empty_like_output(const Metadata::Output& output) {
  auto storage = c10::make_intrusive<c10::StorageImpl>(
      c10::StorageImpl::use_byte_size_t(), static_cast<int64_t>(output.bytes), &device_allocator(), /*resizable=*/true);
  auto tensor = c10::make_intrusive<c10::TensorImpl>(
      c10::Storage(std::move(storage)), cuda_keys, c10::scalarTypeToTypeMeta(output.dtype));
  tensor->set_sizes_and_strides(output.sizes, output.strides);
  return at::Tensor(std::move(tensor));
}

at::Tensor empty_strided(at::IntArrayRef sizes, at::IntArrayRef strides, c10::ScalarType dtype) {
  return at::detail::empty_strided_generic(sizes, strides, &device_allocator(), cuda_keys, dtype);
}

at::Tensor empty(at::IntArrayRef sizes, c10::ScalarType dtype, std::optional<c10::MemoryFormat> format) {
  return at::detail::empty_generic(sizes, &device_allocator(), cuda_keys, dtype, format);
}

void resize_tensor(const at::Tensor& tensor, at::IntArrayRef sizes) {
  at::detail::check_size_nonnegative(sizes);
  set_sizes(tensor.unsafeGetTensorImpl(), sizes, std::nullopt);
}

void resize_bytes(const c10::Storage& storage, size_t bytes) {
  if (bytes > storage.nbytes()) {
    grow(storage, bytes);
    return;
  }
  // Shrinking gives the memory back only at zero, as torch does with a storage that is emptied.
  if (bytes == 0) storage.set_data_ptr_noswap(device_allocator().allocate(0));
  storage.set_nbytes(bytes);
}

at::Tensor& set_storage(
    at::Tensor& tensor, c10::Storage source, int64_t offset, at::IntArrayRef sizes, at::IntArrayRef strides) {
  at::native::checkSetStorage<int64_t>(tensor, std::move(source), offset, sizes, strides);
  auto* impl = tensor.unsafeGetTensorImpl();
  impl->set_storage_offset(offset);
  set_sizes(impl, sizes, strides.data() != nullptr ? std::make_optional(strides) : std::nullopt);
  return tensor;
}

}  // namespace halstream_torch
