#include "pinned.h"

#include <c10/util/Exception.h>

namespace halstream_torch {

namespace {

struct PinnedBlock {
  halstream_id id;
};

void free_pinned(void* context) {
  auto* block = static_cast<PinnedBlock*>(context);
  if (!finished()) core->block_free(block->id);
  delete block;
}

class PinnedAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    c10::Device cpu(c10::DeviceType::CPU);
    if (bytes == 0) return {nullptr, cpu};
    halstream_id id = 0;
    uint64_t address = 0;
    check(core->block_new_host(bytes, &id, &address));
    return {reinterpret_cast<void*>(address), new PinnedBlock{id}, &free_pinned, cpu};
  }
  void copy_data(void* destination, const void* source, std::size_t bytes) const override {
    default_copy_data(destination, source, bytes);
  }
};

}  // namespace

c10::Allocator& pinned_allocator() {
  static auto* allocator = new PinnedAllocator();
  return *allocator;
}

bool is_pinned(const void* address) {
  if (address == nullptr || finished()) return false;
  int kind = 0;
  int32_t device = 0;
  return core->memory_kind(reinterpret_cast<uint64_t>(address), &kind, &device) == HALSTREAM_OK && kind == 1;
}

void record_pinned(const c10::DataPtr& data, halstream_id stream) {
  if (data.get_deleter() != &free_pinned || data.get_context() == nullptr) return;
  check(core->block_record_stream(static_cast<PinnedBlock*>(data.get_context())->id, stream));
}

}  // namespace halstream_torch
