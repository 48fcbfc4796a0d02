#include "kernel_memory.h"

#include "c10/core/CPUAllocator.h"

#include <list>
#include <mutex>

#ifdef __linux__
#include <malloc.h>
#endif

namespace halstream_torch {

namespace {

// Smaller blocks the C library keeps by itself.
constexpr size_t least_kept = 64 << 10;
constexpr size_t most_idle = 64 << 20;  // bytes

thread_local bool in_kernel = false;

struct Idle {
  void* address;
  size_t bytes;
};

// Blocks of the allocator that torch had before, which may free them.
class Kept {
 public:
  explicit Kept(c10::Allocator* system) : system_(system) {}

  c10::Allocator* system() const { return system_; }

  void* take(size_t bytes) {
    std::lock_guard<std::mutex> lock(mutex_);
    auto best = idle_.end();
    for (auto one = idle_.begin(); one != idle_.end(); ++one) {
      if (one->bytes < bytes || one->bytes / 2 > bytes) continue;
      if (best == idle_.end() || one->bytes < best->bytes) best = one;
    }
    if (best == idle_.end()) return nullptr;
    auto* address = best->address;
    held_ -= best->bytes;
    idle_.erase(best);
    return address;
  }

  void give_back(void* address, size_t bytes) {
    std::list<Idle> oldest;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      idle_.push_front({address, bytes});
      held_ += bytes;
      while (held_ > most_idle) {
        held_ -= idle_.back().bytes;
        oldest.splice(oldest.begin(), idle_, std::prev(idle_.end()));
      }
    }
    for (const auto& one : oldest) system_->raw_deallocate(one.address);
  }

 private:
  c10::Allocator* system_;
  std::mutex mutex_;
  std::list<Idle> idle_;  // the latest first
  size_t held_ = 0;       // bytes
};

Kept* kept = nullptr;  // never destroyed: tensors are freed until the process ends

#ifdef __linux__

void give_back(void* address) { kept->give_back(address, malloc_usable_size(address)); }

class CpuAllocator final : public c10::Allocator {
 public:
  explicit CpuAllocator(c10::Allocator* system) : system_(system) {}

  c10::DataPtr allocate(size_t bytes) override {
    if (!in_kernel || bytes < least_kept) return system_->allocate(bytes);
    auto* address = kept->take(bytes);
    if (address == nullptr) address = system_->raw_allocate(bytes);
    return {address, address, &give_back, c10::Device(c10::DeviceType::CPU)};
  }
  bool is_simple_data_ptr(const c10::DataPtr& data) const override { return system_->is_simple_data_ptr(data); }
  c10::DeleterFnPtr raw_deleter() const override { return system_->raw_deleter(); }
  void copy_data(void* to, const void* from, std::size_t bytes) const override { system_->copy_data(to, from, bytes); }

 private:
  c10::Allocator* system_;
};

#endif

}  // namespace

void keep_memory_of_kernels() {
#ifdef __linux__
  auto* system = c10::GetCPUAllocator();
  if (kept != nullptr || system->raw_deleter() == nullptr) return;
  kept = new Kept(system);
  c10::SetCPUAllocator(new CpuAllocator(system), 255);
#endif
}

void leave_memory_of_kernels() {
  if (kept != nullptr) kept = new Kept(kept->system());
}

KernelMemoryScope::KernelMemoryScope() : before_(in_kernel) { in_kernel = true; }
KernelMemoryScope::~KernelMemoryScope() { in_kernel = before_; }

}  // namespace halstream_torch
