#include "metadata.h"

#include <cstring>

namespace halstream_torch {

namespace {

uint64_t bits(double value) {
  uint64_t word = 0;
  std::memcpy(&word, &value, sizeof word);
  return word;
}

uint64_t text_hash(std::string_view text) {
  uint64_t hash = 1469598103934665603ull;  // FNV-1a
  for (unsigned char c : text) hash = (hash ^ c) * 1099511628211ull;
  return hash;
}

}  // namespace

void MetadataKey::add_tensor(const at::Tensor& tensor) {
  if (!tensor.defined()) {
    add(1);
    return;
  }
  auto* impl = tensor.unsafeGetTensorImpl();
  uint64_t device = tensor.device().is_cpu() ? 1 : 0;
  uint64_t flags = (impl->is_wrapped_number() ? 1 : 0) | (tensor.is_conj() ? 2 : 0) | (tensor.is_neg() ? 4 : 0);
  auto dimensions = static_cast<uint64_t>(tensor.dim());
  add(2 | static_cast<uint64_t>(tensor.scalar_type()) << 8 | device << 16 | flags << 24 | dimensions << 32);
  for (auto size : tensor.sizes()) add(static_cast<uint64_t>(size));
  for (auto stride : tensor.strides()) add(static_cast<uint64_t>(stride));
}

bool MetadataKey::add_value(const c10::IValue& value, bool with_numbers) {
  if (value.isTensor()) {
    add_tensor(value.toTensor());
  } else if (value.isNone()) {
    add(3);
  } else if (value.isInt()) {
    add(4);
    if (with_numbers) add(static_cast<uint64_t>(value.toInt()));
  } else if (value.isBool()) {
    add(value.toBool() ? 6 : 5);
  } else if (value.isDouble()) {
    add(7);
    if (with_numbers) add(bits(value.toDouble()));
  } else if (value.isComplexDouble()) {
    add(8);
    if (with_numbers) {
      add(bits(value.toComplexDouble().real()));
      add(bits(value.toComplexDouble().imag()));
    }
  } else if (value.isList()) {
    auto items = value.toListRef();
    add(9 | static_cast<uint64_t>(items.size()) << 8);
    for (const auto& item : items) {
      if (!add_value(item, with_numbers)) return false;
    }
  } else if (value.isString()) {
    add(10);
    add(text_hash(value.toStringRef()));
    add(value.toStringRef().size());
  } else if (value.isDevice()) {
    add(11 | static_cast<uint64_t>(value.toDevice().type()) << 8);
  } else if (value.isGenerator()) {
    add(12);
  } else {
    return false;  // symbolic integers, futures, objects
  }
  return true;
}

uint64_t MetadataKey::hash() const {
  uint64_t hash = words_.size();
  for (auto word : words_) {
    hash = (hash ^ word) * 0x9E3779B97F4A7C15ull;
    hash ^= hash >> 29;
  }
  return hash;
}

std::shared_ptr<const Metadata> MetadataCache::find(const MetadataKey& key, uint64_t hash) const {
  std::lock_guard<std::mutex> lock(mutex_);
  auto found = entries_.find(hash);
  if (found == entries_.end() || key.words() != c10::ArrayRef<uint64_t>(found->second.words)) return nullptr;
  return found->second.metadata;
}

void MetadataCache::insert(const MetadataKey& key, uint64_t hash, std::shared_ptr<const Metadata> metadata) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (entries_.size() >= most_entries) entries_.clear();
  entries_[hash] = {key.words().vec(), std::move(metadata)};
}

}  // namespace halstream_torch
