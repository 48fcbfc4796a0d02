#include "indexed.h"

#include <algorithm>
#include <vector>

#include "ATen/TensorOperators.h"
#include "ATen/ops/arange.h"
#include "ATen/ops/where.h"
#include "ATen/ops/zeros.h"
#include "ATen/ops/zeros_like.h"

namespace halstream_torch {

namespace {

// Of more pieces an operator counts as accessing all of its argument: comparing them would take longer than it does.
constexpr size_t most_indexed_pieces = 1 << 16;

struct Outside {};

// The places that an index names in a dimension of `size`, counted from its begin.
at::Tensor places(const at::Tensor& index, int64_t size) {
  auto at = index.to(at::kLong);
  if (at.numel() == 0) return at;
  if (at.min().item<int64_t>() < -size || at.max().item<int64_t>() >= size) throw Outside();
  return at::where(at.lt(0), at + size, at);
}

// What is accessed: `part`, moved by each of the offsets, in elements.
struct IndexedParts {
  at::Tensor part;
  at::Tensor offsets;
};

IndexedParts by_slices(const at::Tensor& self, int64_t dim, const at::Tensor& index) {
  if (self.dim() == 0) return {self, at::zeros({1}, at::kLong)};
  dim = dim < 0 ? dim + self.dim() : dim;
  if (self.size(dim) == 0) throw Outside();
  return {self.select(dim, 0), places(index, self.size(dim)) * self.stride(dim)};
}

IndexedParts by_elements(const at::Tensor& self, int64_t dim, const at::Tensor& index) {
  if (self.dim() == 0 || index.dim() != self.dim()) return {self, at::zeros({1}, at::kLong)};
  dim = dim < 0 ? dim + self.dim() : dim;
  auto offsets = places(index, self.size(dim)) * self.stride(dim);
  for (int64_t i = 0; i < self.dim(); i++) {
    if (i == dim) continue;
    c10::SmallVector<int64_t, 8> shape(self.dim(), 1);
    shape[i] = index.size(i);
    offsets = offsets + (at::arange(index.size(i), at::kLong) * self.stride(i)).view(shape);
  }
  return {self.as_strided({1}, {1}), offsets};
}

IndexedParts flat(const at::Tensor& self, const at::Tensor& index) {
  auto rest = places(index, self.numel());
  auto offsets = at::zeros_like(rest);
  for (int64_t i = self.dim() - 1; i >= 0; i--) {
    offsets = offsets + rest.remainder(self.size(i)) * self.stride(i);
    rest = rest.div(self.size(i), "floor");
  }
  return {self.as_strided({1}, {1}), offsets};
}

IndexedParts by_lists(const at::Tensor& self, const c10::IValue& indices) {
  std::vector<at::Tensor> moved;  // for each index: how far its places are from the begin
  auto part = self;
  int64_t dim = 0;  // of self
  for (const auto& given : indices.toListRef()) {
    if (given.isNone() || !given.toTensor().defined()) {
      dim++;
      continue;
    }
    const auto& index = given.toTensor();
    bool mask = index.scalar_type() == at::kBool || index.scalar_type() == at::kByte;
    std::vector<at::Tensor> of_dimensions = mask ? index.nonzero().unbind(1) : std::vector<at::Tensor>{index};
    for (const auto& one : of_dimensions) {
      if (dim >= self.dim()) throw Outside();
      moved.push_back(places(one, self.size(dim)) * self.stride(dim));
      if (self.size(dim) == 0) throw Outside();
      part = part.narrow(dim, 0, 1);
      dim++;
    }
  }
  if (moved.empty()) return {self, at::zeros({1}, at::kLong)};
  auto offsets = at::zeros({}, at::kLong);
  for (const auto& one : moved) offsets = offsets + one;
  return {part, offsets};
}

IndexedParts by_mask(const at::Tensor& self, const at::Tensor& mask) {
  auto part = self;
  auto offsets = at::zeros({}, at::kLong);
  auto places = mask.nonzero().unbind(1);
  for (int64_t i = 0; i < mask.dim(); i++) {
    auto dim = self.dim() - mask.dim() + i;
    if (dim < 0) throw Outside();
    if (mask.size(i) == 1) continue;  // for all places of the dimension
    part = part.narrow(dim, 0, 1);
    offsets = offsets + places[i] * self.stride(dim);
  }
  bool none = mask.numel() == 1 && !mask.is_nonzero();
  return {part, none ? at::zeros({0}, at::kLong) : offsets};
}

IndexedParts indexed_parts(Indexing indexing, const Stack& arguments) {
  const auto& self = arguments[0].toTensor();
  switch (indexing) {
    case Indexing::lists:
      return by_lists(self, arguments[1]);
    case Indexing::slices:
      return by_slices(self, arguments[1].toInt(), arguments[2].toTensor());
    case Indexing::rows:
      return by_slices(self, 0, arguments[1].toTensor());
    case Indexing::mask:
      return by_mask(self, arguments[1].toTensor());
    case Indexing::elements:
      return by_elements(self, arguments[1].toInt(), arguments[2].toTensor());
    default:
      return flat(self, arguments[1].toTensor());
  }
}

}  // namespace

bool add_indexed(Ranges& ranges, Indexing indexing, const Stack& arguments, uint32_t access) {
  const auto& self = arguments[0].toTensor();
  if (self.numel() == 0) return true;
  std::vector<int64_t> offsets;
  Ranges part;
  try {
    auto parts = indexed_parts(indexing, arguments);
    auto flat = parts.offsets.reshape({-1}).contiguous();
    offsets.assign(flat.const_data_ptr<int64_t>(), flat.const_data_ptr<int64_t>() + flat.numel());
    add_ranges(part, parts.part, access);
  } catch (const Outside&) {
    return false;
  }
  std::sort(offsets.begin(), offsets.end());
  offsets.erase(std::unique(offsets.begin(), offsets.end()), offsets.end());
  auto first = ranges.size();
  for (auto offset : offsets) {
    for (auto range : part) {
      range.start += offset * self.element_size();
      bool continues = ranges.size() > first && range.rows <= 1 && ranges.back().rows <= 1 &&
          ranges.back().start + ranges.back().bytes == range.start;
      if (continues) {
        ranges.back().bytes += range.bytes;
      } else if (ranges.size() - first == most_indexed_pieces) {
        ranges.resize(first);
        return false;
      } else {
        ranges.push_back(range);
      }
    }
  }
  return true;
}

}  // namespace halstream_torch
