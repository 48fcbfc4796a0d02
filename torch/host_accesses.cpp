#include "host_accesses.h"

#include "alias.h"
#include "core.h"
#include "no_warnings.h"
#include "operators.h"
#include "pinned.h"

#include <Python.h>

#include <ATen/Parallel.h>
#include <torch/library.h>

#include <atomic>
#include <map>
#include <mutex>
#include <unordered_set>

namespace halstream_torch {

namespace {

using c10::DispatchKey;

std::atomic<bool> watching{false};
thread_local bool ignored = false;

// A pageable storage that such a copy was made to.
struct PageableCopy {
  uintptr_t end;
  halstream_id stream;
  c10::weak_intrusive_ptr<c10::StorageImpl> storage;
};

struct PageableCopies {
  std::mutex mutex;
  std::map<uintptr_t, PageableCopy> by_start;
  size_t prune_at = 64;
  std::atomic<bool> any{false};
};
// Never destroyed: threads may still look while the process ends.
PageableCopies& pageable_copies() {
  static auto* all = new PageableCopies();
  return *all;
}

// An argument that the operator reads or writes.
struct Accessed {
  size_t index;
  uint32_t access;
};

void declare(const Ranges& ranges) {
  // The runtime takes the place of the call from Python's stack. torch releases the GIL before it calls operators.
  auto state = PyGILState_Ensure();
  for (const auto& range : ranges) {
    auto rows = range.rows > 1 ? range.rows : 1;
    core->host_access(range.start, (rows - 1) * range.pitch + range.bytes, range.access);
  }
  PyGILState_Release(state);
}

void add_watched(Ranges& ranges, const at::Tensor& tensor, uint32_t access) {
  if (!tensor.defined() || !tensor.is_cpu() || tensor.layout() != c10::kStrided || !tensor.has_storage()) return;
  const auto* data = tensor.unsafeGetTensorImpl()->data();
  if (is_pinned(data) || stream_of_pageable_copy(data) != 0) add_ranges(ranges, tensor, access);
}

// Stands before the CPU's kernel of an operator, on all threads.
class WatchingKernel final : public c10::OperatorKernel {
 public:
  explicit WatchingKernel(std::vector<Accessed> arguments) : arguments_(std::move(arguments)) {}

  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet keys, Stack* stack) {
    auto below = keys & c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER, DispatchKey::BackendSelect);
    // Operators of the device declare what they access in stream order. Threads that share the work of one
    // operator must not wait for the GIL, which its caller may hold.
    if (!watching.load(std::memory_order_relaxed) || ignored || keys.has_backend(c10::BackendComponent::CUDABit) ||
        finished() || at::in_parallel_region()) {
      op.redispatchBoxed(below, stack);
      return;
    }
    Ranges ranges;
    auto first = stack->size() - op.schema().arguments().size();
    for (const auto& argument : arguments_) {
      const auto& value = (*stack)[first + argument.index];
      if (value.isTensor()) {
        add_watched(ranges, value.toTensor(), argument.access);
      } else if (value.isList()) {
        for (const auto& item : value.toListRef()) {
          if (item.isTensor()) add_watched(ranges, item.toTensor(), argument.access);
        }
      }
    }
    if (!ranges.empty() && Py_IsInitialized()) declare(ranges);
    WithoutHostAccesses within;
    op.redispatchBoxed(below, stack);
  }

 private:
  std::vector<Accessed> arguments_;
};

// They work on sizes and storages, not on what a tensor holds.
bool touches_no_data(const std::string& name) {
  static const std::unordered_set<std::string> names{
      "aten::resize_", "aten::set_", "aten::is_set_to", "aten::as_strided_", "aten::_resize_output_",
      "aten::_has_same_storage_numel", "aten::_fused_sdp_choice", "aten::_nested_tensor_size"};
  return names.count(name) != 0;
}

void put_kernels_in_place() {
  // Never destroyed: a kernel cannot be taken away while another thread may be calling it.
  static auto* library = new torch::Library(
      torch::Library::IMPL, "aten", std::make_optional(DispatchKey::BackendSelect), __FILE__, __LINE__);
  auto& dispatcher = c10::Dispatcher::singleton();
  for (const auto& name : dispatcher.getAllOpNames()) {
    if (name.name.rfind("aten::", 0) != 0 || touches_no_data(name.name)) continue;
    auto op = dispatcher.findSchema(name);
    if (!op || makes_view(op->schema()) || op->hasKernelForDispatchKey(DispatchKey::BackendSelect)) continue;
    // One kernel of copies serves all devices. Others of that kind call operators that are looked at themselves.
    if (!op->hasKernelForDispatchKey(DispatchKey::CPU) && name.name != "aten::copy_") continue;
    std::vector<Accessed> accessed;
    Operator facts(*op);
    for (size_t i = 0; i < facts.arguments.size(); i++) {
      const auto& argument = facts.arguments[i];
      if (argument.kind != ArgumentFacts::Kind::tensor && argument.kind != ArgumentFacts::Kind::tensors) continue;
      // What no write may be unordered with, no read of an operator in place may be either.
      uint32_t access = argument.writes ? HALSTREAM_WRITE : HALSTREAM_READ;
      accessed.push_back({i, access});
    }
    if (accessed.empty()) continue;
    auto full = name.name.substr(6) + (name.overload_name.empty() ? "" : "." + name.overload_name);
    library->impl(
        full.c_str(),
        torch::CppFunction::makeFromBoxedFunctor(std::make_unique<WatchingKernel>(std::move(accessed))));
  }
}

}  // namespace

void watch_host_accesses(bool on) {
  static std::once_flag once;
  if (on) {
    std::call_once(once, [] {
      NoWarnings quiet;
      put_kernels_in_place();
    });
  }
  watching.store(on, std::memory_order_relaxed);
  if (on) return;
  auto& all = pageable_copies();
  std::lock_guard<std::mutex> lock(all.mutex);
  all.by_start.clear();
  all.any.store(false, std::memory_order_relaxed);
}

void note_pageable_copy(const at::Tensor& host, halstream_id stream) {
  if (!watching.load(std::memory_order_relaxed) || !host.has_storage() || is_pinned(host.const_data_ptr())) return;
  const auto& storage = host.storage();
  auto start = reinterpret_cast<uintptr_t>(storage.data());
  auto& all = pageable_copies();
  std::lock_guard<std::mutex> lock(all.mutex);
  if (all.by_start.size() >= all.prune_at) {
    for (auto at = all.by_start.begin(); at != all.by_start.end();) {
      at = at->second.storage.expired() ? all.by_start.erase(at) : std::next(at);
    }
    all.prune_at = std::max<size_t>(64, 2 * all.by_start.size());
  }
  all.by_start.insert_or_assign(
      start, PageableCopy{start + storage.nbytes(), stream,
                          c10::weak_intrusive_ptr<c10::StorageImpl>(storage.getWeakStorageImpl())});
  all.any.store(true, std::memory_order_relaxed);
}

halstream_id stream_of_pageable_copy(const void* address) {
  auto& all = pageable_copies();
  if (!all.any.load(std::memory_order_relaxed)) return 0;
  auto at = reinterpret_cast<uintptr_t>(address);
  c10::intrusive_ptr<c10::StorageImpl> kept;  // outlives the lock: its end may call the program's code
  std::lock_guard<std::mutex> lock(all.mutex);
  auto found = all.by_start.upper_bound(at);
  if (found == all.by_start.begin()) return 0;
  const auto& copy = (--found)->second;
  if (at >= copy.end) return 0;
  // The memory may be another's by now: the storage has ended, or was given other memory.
  kept = copy.storage.lock();
  return kept && reinterpret_cast<uintptr_t>(kept->data()) == found->first ? copy.stream : 0;
}

WithoutHostAccesses::WithoutHostAccesses() noexcept : before_(ignored) { ignored = true; }
WithoutHostAccesses::~WithoutHostAccesses() { ignored = before_; }

}  // namespace halstream_torch
