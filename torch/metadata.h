// Sizes, strides and types of an operator's results, remembered by what decides them.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/stack.h>
#include <c10/util/SmallVector.h>

#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace halstream_torch {

using torch::jit::Stack;

struct Metadata {
  struct Output {
    c10::SmallVector<int64_t, 5> sizes, strides;
    c10::ScalarType dtype;
    bool defined;
    size_t bytes;
  };
  // False if torch has no meta kernel for the operator or it needs values: only running tells.
  bool known = true;
  // True if a meta function in Python raised: the call is probably wrong, and the CPU kernel says why.
  bool raised = false;
  std::vector<Output> outputs;
  // How many outputs each return value has; -1 for a single tensor, `number` for one of `numbers`.
  std::vector<int> lengths;
  static constexpr int number = -2;
  std::vector<c10::IValue> numbers;
};

// Everything about a call that decides its results' metadata, as words.
class MetadataKey {
 public:
  void add(uint64_t word) { words_.push_back(word); }
  void add_tensor(const at::Tensor& tensor);
  // Adds one argument that is no tensor; false if it cannot be part of a key.
  bool add_value(const c10::IValue& value, bool with_numbers);
  uint64_t hash() const;
  c10::ArrayRef<uint64_t> words() const { return words_; }

 private:
  c10::SmallVector<uint64_t, 64> words_;
};

class MetadataCache {
 public:
  std::shared_ptr<const Metadata> find(const MetadataKey& key, uint64_t hash) const;
  void insert(const MetadataKey& key, uint64_t hash, std::shared_ptr<const Metadata> metadata);

 private:
  // More kinds of calls than this for one operator do not repeat (lengths that grow by one, for example).
  static constexpr size_t most_entries = 4096;
  struct Entry {
    std::vector<uint64_t> words;
    std::shared_ptr<const Metadata> metadata;
  };
  mutable std::mutex mutex_;
  std::unordered_map<uint64_t, Entry> entries_;
};

}  // namespace halstream_torch
