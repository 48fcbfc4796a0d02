#include "pinned.h"

#include "used_devices.h"

#include <c10/util/Exception.h>

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <vector>

namespace halstream_torch {

namespace {

struct Figures {
  std::mutex mutex;
  PinnedFigures all;
};
// Never destroyed: blocks may be freed while the process ends.
Figures& figures() {
  static auto* one = new Figures();
  return *one;
}

int64_t microseconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - start).count();
}

void count_use(size_t bytes) {
  auto& one = figures();
  std::lock_guard<std::mutex> lock(one.mutex);
  one.all.requests.increase(1);
  one.all.active_bytes.increase(bytes);
}

void count_end_of_use(size_t bytes) {
  auto& one = figures();
  std::lock_guard<std::mutex> lock(one.mutex);
  one.all.requests.decrease(1);
  one.all.active_bytes.decrease(bytes);
}

struct PinnedBlock {
  halstream_id id;
  void* address;
  size_t bytes;
  uint64_t generation;                // of the runtime: another one knows nothing of the block
  std::vector<halstream_id> streams;  // that work of the program used it on
  std::vector<halstream_id> events;   // behind that work, once the program has freed it
};

void return_block(PinnedBlock* block) {
  auto start = std::chrono::steady_clock::now();
  core->block_free(block->id);
  auto& one = figures();
  std::lock_guard<std::mutex> lock(one.mutex);
  one.all.allocations.decrease(1);
  one.all.allocated_bytes.decrease(block->bytes);
  one.all.freed++;
  one.all.free_time.increase(microseconds_since(start));
  delete block;
}

// Blocks are kept and given out again, as torch's own allocator does: the pages of a large one are back from the
// system already. One that streams use is given out when events behind their work are done.
class PinnedCache {
 public:
  PinnedBlock* take(size_t bytes) {
    if (forked_) return nullptr;
    std::lock_guard<std::mutex> lock(mutex_);
    if (generation_ != core->generation()) {
      idle_.clear();
      freed_.clear();
      generation_ = core->generation();
    }
    look_at_freed();
    auto& kept = idle_[bytes];
    if (kept.empty()) return nullptr;
    auto* block = kept.back();
    kept.pop_back();
    return block;
  }

  void record(PinnedBlock* block, halstream_id stream) {
    std::lock_guard<std::mutex> lock(mutex_);
    auto& all = block->streams;
    if (std::find(all.begin(), all.end(), stream) == all.end()) all.push_back(stream);
  }

  // False if the block cannot be kept: threads of the runtime cannot record events.
  bool keep(PinnedBlock* block) {
    if (forked_ || block->generation != core->generation()) return false;
    for (auto stream : block->streams) {
      halstream_id event = 0;
      if (core->event_record_new(stream, 0, &event) != HALSTREAM_OK) {
        close_events(block);
        return false;
      }
      block->events.push_back(event);
    }
    block->streams.clear();
    std::lock_guard<std::mutex> lock(mutex_);
    if (block->events.empty()) {
      count_end_of_use(block->bytes);
      idle_[block->bytes].push_back(block);
    } else {
      freed_.push_back(block);
    }
    return true;
  }

  // Gives every idle block back to the runtime.
  void empty() {
    std::map<size_t, std::vector<PinnedBlock*>> idle;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      look_at_freed();
      idle.swap(idle_);
    }
    for (auto& [bytes, blocks] : idle) {
      for (auto* block : blocks) return_block(block);
    }
  }

  void forked() { forked_ = true; }

  static void close_events(PinnedBlock* block) {
    for (auto event : block->events) core->event_close(event);
    block->events.clear();
  }

 private:
  void look_at_freed() {
    size_t left = 0;
    for (auto* block : freed_) {
      bool done = std::all_of(block->events.begin(), block->events.end(), [](halstream_id event) {
        int passed = 0;
        return core->event_query(event, &passed) != HALSTREAM_OK || passed != 0;
      });
      if (done) {
        close_events(block);
        count_end_of_use(block->bytes);
        idle_[block->bytes].push_back(block);
      } else {
        freed_[left++] = block;
      }
    }
    freed_.resize(left);
  }

  std::mutex mutex_;
  std::atomic<bool> forked_{false};  // the runtime refuses all calls then
  uint64_t generation_ = 0;
  std::map<size_t, std::vector<PinnedBlock*>> idle_;  // by their sizes, which are powers of two
  std::vector<PinnedBlock*> freed_;
};

// Never destroyed: tensors may be freed while the process ends.
PinnedCache& cache() {
  static auto* one = [] {
    auto* made = new PinnedCache();
    pthread_atfork(nullptr, nullptr, [] { cache().forked(); });
    return made;
  }();
  return *one;
}

void free_pinned(void* context) {
  auto* block = static_cast<PinnedBlock*>(context);
  if (finished()) {
    delete block;
    return;
  }
  // What listens follows each block from its allocation to its end.
  if (core->listening() == 0 && cache().keep(block)) return;
  count_end_of_use(block->bytes);
  return_block(block);
}

size_t rounded_to_power(size_t bytes) {
  size_t power = 512;
  while (power < bytes && power != 0) power *= 2;
  return power != 0 ? power : bytes;
}

PinnedBlock* new_block(size_t bytes) {
  // As on a GPU: pinning takes a context that exists, else it makes that of the current device.
  if (!any_is_used()) mark_used(current_device());
  auto start = std::chrono::steady_clock::now();
  halstream_id id = 0;
  uint64_t address = 0;
  int code = core->block_new_host(bytes, &id, &address);
  if (code == HALSTREAM_OUT_OF_MEMORY) {
    cache().empty();
    code = core->block_new_host(bytes, &id, &address);
  }
  check(code);
  {
    auto& one = figures();
    std::lock_guard<std::mutex> lock(one.mutex);
    one.all.allocations.increase(1);
    one.all.allocated_bytes.increase(bytes);
    one.all.allocated++;
    one.all.allocation_time.increase(microseconds_since(start));
  }
  return new PinnedBlock{id, reinterpret_cast<void*>(address), bytes, core->generation(), {}, {}};
}

// Start and end of registered memory.
struct Registered {
  std::mutex mutex;
  std::atomic<size_t> count{0};
  std::map<uint64_t, uint64_t> ranges;

  bool has(uint64_t address) {
    if (count.load(std::memory_order_acquire) == 0) return false;
    std::lock_guard<std::mutex> lock(mutex);
    auto next = ranges.upper_bound(address);
    return next != ranges.begin() && address < std::prev(next)->second;
  }
};
Registered& registered() {
  static auto* all = new Registered();
  return *all;
}

class PinnedAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    c10::Device cpu(c10::DeviceType::CPU);
    if (bytes == 0) return {nullptr, cpu};
    PinnedBlock* block = nullptr;
    if (core->listening() != 0) {
      block = new_block(bytes);
    } else {
      block = cache().take(rounded_to_power(bytes));
      if (block == nullptr) block = new_block(rounded_to_power(bytes));
    }
    count_use(block->bytes);
    return {block->address, block, &free_pinned, cpu};
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

void empty_pinned_cache() { cache().empty(); }

PinnedFigures pinned_figures() {
  auto& one = figures();
  std::lock_guard<std::mutex> lock(one.mutex);
  return one.all;
}

void reset_pinned_figures(bool accumulated, bool peaks) {
  auto& one = figures();
  std::lock_guard<std::mutex> lock(one.mutex);
  auto reset = [&](auto& stat) {
    if (accumulated) stat.reset_accumulated();
    if (peaks) stat.reset_peak();
  };
  for (auto* stat : {&one.all.allocations, &one.all.allocated_bytes, &one.all.requests, &one.all.active_bytes}) {
    reset(*stat);
  }
  for (auto* stat : {&one.all.allocation_time, &one.all.free_time}) reset(*stat);
  if (accumulated) one.all.allocated = one.all.freed = 0;
}

bool is_pinned(const void* address) {
  if (address == nullptr || finished()) return false;
  int kind = 0;
  int32_t device = 0;
  auto place = reinterpret_cast<uint64_t>(address);
  if (registered().has(place)) return true;
  return core->memory_kind(place, &kind, &device) == HALSTREAM_OK && kind == 1;
}

bool register_pinned(uint64_t address, uint64_t bytes) {
  auto& all = registered();
  if (is_pinned(reinterpret_cast<const void*>(address))) return false;
  std::lock_guard<std::mutex> lock(all.mutex);
  all.ranges[address] = address + bytes;
  all.count.store(all.ranges.size(), std::memory_order_release);
  return true;
}

bool unregister_pinned(uint64_t address) {
  auto& all = registered();
  std::lock_guard<std::mutex> lock(all.mutex);
  bool was = all.ranges.erase(address) != 0;
  all.count.store(all.ranges.size(), std::memory_order_release);
  return was;
}

void record_pinned(const c10::DataPtr& data, halstream_id stream) {
  if (data.get_deleter() != &free_pinned || data.get_context() == nullptr) return;
  auto* block = static_cast<PinnedBlock*>(data.get_context());
  check(core->block_record_stream(block->id, stream));
  cache().record(block, stream);
}

}  // namespace halstream_torch
