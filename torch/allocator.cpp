#include "allocator.h"

#include "device_memory.h"
#include "gpu_trace.h"
#include "private_pools.h"
#include "segments.h"
#include "visible.h"

#include "c10/core/AllocatorConfig.h"
#include "c10/util/ScopeExit.h"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

namespace halstream_torch {

namespace {

using c10::CachingDeviceAllocator::DeviceStats;
using c10::CachingAllocator::StatType;

// The rounding of torch's caching allocator, so that memory_allocated shows the figures that a GPU shows.
constexpr size_t smallest_block = 512;
constexpr size_t small_pool_limit = 1 << 20;
constexpr size_t most_bytes = 1152921504606846976ull;

struct Block {
  halstream_id id;
  void* address;
  size_t bytes;      // rounded
  size_t requested;  // as the program asked
  DeviceIndex device;
  halstream_id stream;
  bool counted = true;
  std::vector<halstream_id> others = {};  // streams that record_stream named, while somebody listens
  PoolPointer pool = {};                  // that its memory belongs to, if it is not the device's own
  PoolMemory lent = {};
  bool captured = false;        // made in a capture, whose nodes use it in each launch
  bool used_elsewhere = false;  // on a stream that record_stream named
  bool given_up = false;        // its memory went back to its pool already
};

// The blocks of private pools that are in use, by address.
struct LentBlocks {
  std::mutex mutex;
  std::map<void*, Block*> blocks;
};
LentBlocks& lent_blocks() {
  static auto* all = new LentBlocks();
  return *all;
}

template <class Change>
void each_counter(Block* block, Change change) {
  if (!block->counted) return;
  auto& device = memory()[block->device];
  auto pool = static_cast<size_t>(block->bytes <= small_pool_limit ? StatType::SMALL_POOL : StatType::LARGE_POOL);
  std::lock_guard<std::mutex> lock(device.mutex);
  for (auto kind : {static_cast<size_t>(StatType::AGGREGATE), pool}) {
    change(device.stats.allocation[kind], 1);
    change(device.stats.active[kind], 1);
    change(device.stats.allocated_bytes[kind], block->bytes);
    change(device.stats.active_bytes[kind], block->bytes);
    change(device.stats.requested_bytes[kind], block->requested);
  }
}

bool frees_in_order() {
  static const bool asked = [] {
    for (const char* name : {"PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"}) {
      const char* value = std::getenv(name);
      if (value != nullptr && std::strstr(value, "backend:cudaMallocAsync") != nullptr) return true;
    }
    return false;
  }();
  return asked;
}

// Frees and emptied caches look at no stream of a device that was lost: nothing runs there, and that is not theirs to
// report.
bool works(DeviceIndex device) {
  char text[2] = "";
  return core->device_failure(device, text, sizeof text) == HALSTREAM_OK && text[0] == 0;
}

// The runtime waits by itself for such work; the events let what listens know that the host has waited.
void mark_uses(const Block& block) {
  auto& of = memory()[block.device];
  if (!block.others.empty() && !works(block.device)) return;
  for (auto stream : block.others) {
    halstream_id event = 0;
    if (core->event_record_new(stream, 0, &event) != HALSTREAM_OK) continue;
    {
      std::lock_guard<std::mutex> lock(of.mutex);
      if (of.generation != core->generation()) of.uses.clear();
      of.generation = core->generation();
      std::swap(of.uses[stream], event);
    }
    if (event != 0) core->event_close(event);
  }
}

void wait_for_uses(DeviceIndex device) {
  std::map<halstream_id, halstream_id> uses;
  auto& of = memory()[device];
  {
    std::lock_guard<std::mutex> lock(of.mutex);
    if (of.generation == core->generation()) uses.swap(of.uses);
  }
  for (auto [stream, event] : uses) {
    auto close = c10::make_scope_exit([event = event] { core->event_close(event); });
    if (works(device)) synchronize_event(event);
  }
}

std::atomic<MemoryObserver> memory_observer{nullptr};

void tell(bool allocated, const Block& block) {
  auto observer = memory_observer.load(std::memory_order_acquire);
  if (observer != nullptr) observer(allocated, block.device, block.address, block.requested, block.stream);
}

// Lets a profiler of the calling thread know of an allocation or a free (profile_memory of torch.profiler).
void report_to_profiler(bool allocated, const Block& block) {
  if (!block.counted || !c10::memoryProfilingEnabled()) return;
  halstream_memory of_core{};
  of_core.size = sizeof of_core;
  if (core->memory_stats(block.device, &of_core) != HALSTREAM_OK) return;
  int64_t in_use = 0;
  {
    auto& of = memory()[block.device];
    std::lock_guard<std::mutex> lock(of.mutex);
    in_use = of.stats.allocated_bytes[static_cast<size_t>(StatType::AGGREGATE)].current;
  }
  auto bytes = static_cast<int64_t>(block.bytes);
  c10::reportMemoryUsageToProfiler(
      block.address, allocated ? bytes : -bytes, static_cast<size_t>(in_use), of_core.reserved,
      c10::Device(c10::DeviceType::CUDA, block.device));
}

// Memory of a pool that another stream has used comes after that work, too. In a capture nothing can wait for that
// work, so it is not given out again.
void give_back(const Block& block) {
  bool runs_once = block.used_elsewhere && !block.captured;
  if (runs_once) core->block_record_stream(block.id, block.stream);
  auto reuse = !block.used_elsewhere ? Reuse::on_same_stream : runs_once ? Reuse::after_recorded_streams : Reuse::never;
  block.pool->give_back(block.stream, block.lent, reuse);
}

// Ends the use of a block's memory.
void end_block(Block* block) {
  tell(false, *block);
  if (!block->others.empty()) mark_uses(*block);
  if (block->pool) {
    {
      auto& all = lent_blocks();
      std::lock_guard<std::mutex> lock(all.mutex);
      all.blocks.erase(block->address);
    }
    give_back(*block);
  } else if (frees_in_order()) {
    PlaceOfCall place;
    core->block_free(block->id);
  } else {
    core->block_free(block->id);
  }
  each_counter(block, [](auto& stat, size_t amount) { stat.decrease(amount); });
  report_to_profiler(false, *block);
  trace([&](auto& to) { to.trace_gpu_memory_deallocation(traced_device, address_of(block->address)); });
}

void free_block(void* context) {
  auto* block = static_cast<Block*>(context);
  if (!finished() && !block->given_up) end_block(block);
  delete block;
}

// Rounds as torch's allocator does: to 512 bytes, or to a part of a power of two (roundup_power2_divisions).
size_t rounded(size_t requested) {
  auto divisions = c10::CachingAllocator::AcceleratorAllocatorConfig::roundup_power2_divisions(requested);
  size_t unit = smallest_block;
  if (divisions > 1 && requested > smallest_block * divisions) {
    size_t power = smallest_block;
    while (power <= requested / 2) power *= 2;
    unit = power / divisions;
  }
  return (requested + unit - 1) / unit * unit;
}

// Allocates for the work of a stream; where there is no memory, once more without what the pools keep. Memory of
// a pool can be given out again for as many as `bytes`.
void allocate(
    halstream_id stream, size_t requested, size_t bytes, DeviceIndex device, bool for_pool, PoolMemory& made) {
  size_t size = for_pool ? bytes : requested;
  uint64_t address = 0;
  PlaceOfCall place;
  auto block_new = frees_in_order() ? core->block_new_in_order : core->block_new;
  // As many bytes as the program asked for: what a kernel accesses behind them is not its memory.
  int code = block_new(stream, size, &made.block, &address);
  if (code == HALSTREAM_OUT_OF_MEMORY) {
    core->memory_empty_cache(device);
    {
      auto& of = memory()[device];
      std::lock_guard<std::mutex> lock(of.mutex);
      of.stats.num_alloc_retries++;
      of.stats.num_sync_all_streams++;
    }
    code = block_new(stream, size, &made.block, &address);
  }
  if (code == HALSTREAM_OUT_OF_MEMORY) out_of_memory(requested, device);
  check(code);
  made.address = reinterpret_cast<void*>(address);
  made.bytes = bytes;
}

// Begins the use of a block's memory.
void begin_block(Block* block) {
  if (block->pool) {
    auto& all = lent_blocks();
    std::lock_guard<std::mutex> lock(all.mutex);
    all.blocks[block->address] = block;
  }
  each_counter(block, [](auto& stat, size_t amount) { stat.increase(amount); });
  report_to_profiler(true, *block);
  tell(true, *block);
  trace([&](auto& to) { to.trace_gpu_memory_allocation(traced_device, address_of(block->address)); });
}

Block* new_block(size_t requested, DeviceIndex device, halstream_id stream, bool counted = true) {
  size_t bytes = requested < most_bytes ? rounded(requested) : requested;
  TORCH_CHECK_WITH(
      OutOfMemoryError, requested < most_bytes && bytes >= requested,
      "CUDA out of memory. Tried to allocate more than 1EB memory.");
  if (over_fraction(bytes, device)) out_of_memory(requested, device);
  auto pool = pool_for(device, stream);
  PoolMemory memory;
  if (pool) memory = pool->take(stream, bytes);
  if (memory.address == nullptr) {
    allocate(pool ? pool->owner(device) : stream, requested, bytes, device, pool != nullptr, memory);
    if (pool) pool->lend();
  }
  auto* block = new Block{memory.block, memory.address, bytes, requested, device, stream, counted};
  block->captured = pool && capture_of(stream) != 0;
  block->pool = std::move(pool);
  block->lent = memory;
  begin_block(block);
  return block;
}

class DeviceAllocator final : public c10::DeviceAllocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    auto device = current_device();
    c10::Device of(c10::DeviceType::CUDA, device);
    if (bytes == 0) return {nullptr, nullptr, &free_block, of};
    TORCH_CHECK(core != nullptr && !finished(), "the runtime below the CUDA device has ended with the process");
    auto* block = new_block(bytes, device, current_stream(device));
    return {block->address, block, &free_block, of};
  }
  void copy_data(void* destination, const void* source, std::size_t bytes) const override {
    // Clones of a storage: torch's own allocator waits here, too.
    synchronize_device(current_device());
    std::memcpy(destination, source, bytes);
  }
  bool initialized() override { return core != nullptr; }
  void emptyCache(c10::MempoolId_t) override {
    for (int i = 0; i < runtime_devices(); i++) {
      wait_for_uses(static_cast<DeviceIndex>(i));
      check(core->memory_empty_cache(i));
      auto& of = memory()[i];
      std::lock_guard<std::mutex> lock(of.mutex);
      of.stats.num_sync_all_streams++;
    }
  }
  void recordStream(const c10::DataPtr& data, c10::Stream stream) override { record_stream(data, stream); }

  DeviceStats getDeviceStats(c10::DeviceIndex index) override {
    auto& device = memory()[resolve_device(index)];
    halstream_memory core_stats{};
    core_stats.size = sizeof core_stats;
    check(core->memory_stats(resolve_device(index), &core_stats));
    std::lock_guard<std::mutex> lock(device.mutex);
    auto stats = device.stats;
    fill_segment_stats(resolve_device(index), core_stats, stats);
    return stats;
  }
  void resetAccumulatedStats(c10::DeviceIndex index) override {
    each_stat(index, [](auto& stat) { stat.reset_accumulated(); });
    halstream_memory core_stats{};
    core_stats.size = sizeof core_stats;
    check(core->memory_stats(resolve_device(index), &core_stats));
    reset_segment_stats(resolve_device(index), core_stats);
    auto& device = memory()[resolve_device(index)];
    std::lock_guard<std::mutex> lock(device.mutex);
    device.stats.num_alloc_retries = 0;
    device.stats.num_ooms = 0;
  }
  void resetPeakStats(c10::DeviceIndex index) override {
    each_stat(index, [](auto& stat) { stat.reset_peak(); });
    check(core->memory_reset_peaks(resolve_device(index)));
  }
  std::pair<size_t, size_t> getMemoryInfo(c10::DeviceIndex index) override {
    uint64_t available = 0, total = 0;
    check(core->device_memory(resolve_device(index), &available, &total));
    return {available, total};
  }

 private:
  template <class Change>
  void each_stat(c10::DeviceIndex index, Change change) {
    auto& device = memory()[resolve_device(index)];
    std::lock_guard<std::mutex> lock(device.mutex);
    auto& s = device.stats;
    for (auto* array : {&s.allocation, &s.active, &s.allocated_bytes, &s.active_bytes, &s.requested_bytes}) {
      for (auto& stat : *array) change(stat);
    }
  }
};

// What torch.cuda.caching_allocator_enable says: memory that bypasses the cache is in no figure.
std::atomic<bool> counting_raw{true};

struct RawBlocks {
  std::mutex mutex;
  std::unordered_map<void*, Block*> blocks;
};
RawBlocks& raw_blocks() {
  static auto* all = new RawBlocks();
  return *all;
}

}  // namespace

namespace {

// The block of a private pool that is in use at an address, null for none.
Block* lent_block(void* address) {
  auto& all = lent_blocks();
  std::lock_guard<std::mutex> lock(all.mutex);
  auto found = all.blocks.find(address);
  return found == all.blocks.end() ? nullptr : found->second;
}

std::vector<Block*> lent_of(const PoolPointer& pool) {
  std::vector<Block*> blocks;
  auto& all = lent_blocks();
  std::lock_guard<std::mutex> lock(all.mutex);
  for (auto [address, block] : all.blocks) {
    if (block->pool == pool) blocks.push_back(block);
  }
  return blocks;
}

}  // namespace

const char* allocator_backend() { return frees_in_order() ? "cudaMallocAsync" : "native"; }

c10::DeviceAllocator& device_allocator() {
  static auto* allocator = new DeviceAllocator();
  return *allocator;
}

void install_device_allocator() { c10::SetAllocator(c10::DeviceType::CUDA, &device_allocator(), 255); }

void record_stream(const c10::DataPtr& data, const c10::Stream& stream) {
  if (data.get_deleter() != &free_block || data.get_context() == nullptr) return;
  auto* block = static_cast<Block*>(data.get_context());
  auto id = runtime_stream(stream);
  if (id == block->stream) return;
  block->used_elsewhere = true;
  if (block->captured) return;
  check(core->block_record_stream(block->id, id));
  if (core->listening() != 0) block->others.push_back(id);
}

void set_counting_raw(bool on) { counting_raw = on; }
bool counts_raw() { return counting_raw; }

void observe_memory(MemoryObserver observer) { memory_observer.store(observer, std::memory_order_release); }

void* raw_allocate(size_t bytes, DeviceIndex device, halstream_id stream) {
  if (bytes == 0) return nullptr;
  auto* block = new_block(bytes, device, stream, counting_raw);
  auto& all = raw_blocks();
  std::lock_guard<std::mutex> lock(all.mutex);
  all.blocks[block->address] = block;
  return block->address;
}

void raw_free(void* address) {
  if (address == nullptr) return;
  Block* block = nullptr;
  {
    auto& all = raw_blocks();
    std::lock_guard<std::mutex> lock(all.mutex);
    auto found = all.blocks.find(address);
    if (found != all.blocks.end()) {
      block = found->second;
      all.blocks.erase(found);
    }
  }
  if (block == nullptr) block = lent_block(address);
  TORCH_CHECK(block != nullptr, "invalid device pointer: ", address);
  free_block(block);
}

// -- checkpoints of private pools ---------------------------------------------

bool owns_memory(const c10::StorageImpl& storage) { return storage.data_ptr().get_deleter() == &free_block; }

void free_memory(c10::StorageImpl& storage) {
  TORCH_CHECK(owns_memory(storage), "the storage does not own memory of the device");
  c10::DataPtr address_only(storage.data_ptr().get(), storage.device());
  storage.set_data_ptr(std::move(address_only));  // what is returned, and dropped, is the owner
}

std::vector<void*> lent_addresses(const PoolPointer& pool) {
  std::vector<void*> addresses;
  for (auto* block : lent_of(pool)) addresses.push_back(block->address);
  return addresses;
}

struct PoolCheckpoint {
  PoolPointer pool;
  std::vector<Block> blocks;
};

std::shared_ptr<PoolCheckpoint> checkpoint_of(const PoolPointer& pool) {
  auto made = std::make_shared<PoolCheckpoint>();
  made->pool = pool;
  for (auto* block : lent_of(pool)) made->blocks.push_back(*block);
  return made;
}

void restore(const PoolCheckpoint& state, const std::vector<c10::StorageImpl*>& owners) {
  std::map<void*, const Block*> wanted;
  for (const auto& block : state.blocks) wanted[block.address] = &block;
  for (auto* block : lent_of(state.pool)) {
    if (wanted.count(block->address) != 0) continue;
    end_block(block);
    block->given_up = true;  // whoever has it deletes it
  }
  for (auto [address, block] : wanted) {
    if (lent_block(address) != nullptr) continue;
    TORCH_CHECK(
        state.pool->take_at(block->stream, address), "the memory at ", address,
        " is not in its pool any more, so that the checkpoint cannot be restored");
    auto* again = new Block(*block);
    again->used_elsewhere = false;
    again->others.clear();
    begin_block(again);
  }
  for (auto* storage : owners) {
    auto* block = lent_block(storage->data_ptr().get());
    if (block == nullptr || storage->data_ptr().get_deleter() == &free_block) continue;
    storage->set_data_ptr_noswap({block->address, block, &free_block, storage->device()});
  }
}

}  // namespace halstream_torch
