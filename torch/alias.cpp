#include "alias.h"

#include "layouts.h"

#include <c10/core/StorageImpl.h>
#include <c10/core/TensorImpl.h>

#include <algorithm>

namespace halstream_torch {

namespace {

constexpr uint64_t most_pieces = 64;

// The elements from the first to the last that a tensor addresses.
uint64_t extent(const at::Tensor& tensor) {
  if (tensor.numel() == 0) return 0;
  int64_t last = 0;
  for (int64_t i = 0; i < tensor.dim(); i++) last += (tensor.size(i) - 1) * tensor.stride(i);
  return static_cast<uint64_t>(last) + 1;
}

struct Dimension {
  uint64_t size;
  uint64_t pitch;  // bytes
};

at::Tensor plain_alias(const at::Tensor& tensor) {
  uint64_t bytes = extent(tensor) * tensor.element_size();
  void* data = bytes != 0 ? tensor.unsafeGetTensorImpl()->mutable_data() : nullptr;
  auto storage = c10::make_intrusive<c10::StorageImpl>(
      c10::StorageImpl::use_byte_size_t(), bytes, c10::DataPtr(data, c10::Device(c10::DeviceType::CPU)), nullptr,
      /*resizable=*/false);
  auto impl = c10::make_intrusive<c10::TensorImpl>(
      c10::Storage(std::move(storage)), c10::DispatchKeySet(c10::DispatchKey::CPU), tensor.dtype());
  impl->set_sizes_and_strides(tensor.sizes(), tensor.strides());
  if (tensor.is_conj()) impl->_set_conj(true);
  if (tensor.is_neg()) impl->_set_neg(true);
  if (tensor.unsafeGetTensorImpl()->is_wrapped_number()) impl->set_wrapped_number(true);
  return at::Tensor(std::move(impl));
}

void add_plain(Ranges& ranges, const at::Tensor& tensor, uint32_t access) {
  if (tensor.numel() == 0) return;
  uint64_t item = tensor.element_size();
  auto start = reinterpret_cast<uint64_t>(tensor.unsafeGetTensorImpl()->data());
  if (tensor.is_contiguous()) {
    ranges.push_back({start, tensor.numel() * item, 1, 0, access, 0});
    return;
  }
  c10::SmallVector<Dimension, 8> dimensions;
  for (int64_t i = 0; i < tensor.dim(); i++) {
    if (tensor.size(i) > 1 && tensor.stride(i) != 0) {
      dimensions.push_back({static_cast<uint64_t>(tensor.size(i)), tensor.stride(i) * item});
    }
  }
  std::sort(dimensions.begin(), dimensions.end(), [](auto& a, auto& b) { return a.pitch < b.pitch; });
  // Dimensions that continue where the one inside ends belong to one piece.
  uint64_t piece = item;
  size_t inside = 0;
  while (inside < dimensions.size() && dimensions[inside].pitch <= piece) {
    piece = std::max(piece, (dimensions[inside].size - 1) * dimensions[inside].pitch + piece);
    inside++;
  }
  if (inside == dimensions.size()) {
    ranges.push_back({start, piece, 1, 0, access, 0});
    return;
  }
  uint64_t rows = dimensions[inside].size, pitch = dimensions[inside].pitch;
  uint64_t repeats = 1;
  for (size_t i = inside + 1; i < dimensions.size(); i++) {
    if (dimensions[i].pitch == rows * pitch) {  // continues the rows
      rows *= dimensions[i].size;
      dimensions[i].size = 1;
    } else {
      repeats *= dimensions[i].size;
    }
  }
  if (repeats > most_pieces) {
    ranges.push_back({start, extent(tensor) * item, 1, 0, access, 0});
    return;
  }
  for (uint64_t k = 0; k < repeats; k++) {
    uint64_t rest = k, offset = 0;
    for (size_t i = inside + 1; i < dimensions.size(); i++) {
      offset += rest % dimensions[i].size * dimensions[i].pitch;
      rest /= dimensions[i].size;
    }
    ranges.push_back({start + offset, piece, rows, pitch, access, 0});
  }
}

}  // namespace

at::Tensor cpu_alias(const at::Tensor& tensor) {
  if (is_plain(tensor)) return plain_alias(tensor);
  auto parts = parts_of(tensor);
  for (auto& part : parts) part = plain_alias(part);
  return assemble(tensor, parts);
}

void add_ranges(Ranges& ranges, const at::Tensor& tensor, uint32_t access) {
  if (is_plain(tensor)) {
    add_plain(ranges, tensor, access);
    return;
  }
  for (const auto& part : parts_of(tensor)) add_plain(ranges, part, access);
}

}  // namespace halstream_torch
