#include "backlog.h"

#include "core.h"

#include <Python.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>

namespace halstream_torch {

namespace {

// One takes about 1 KB, with the sanitizer 2.
constexpr int64_t most_pending = 4096;
constexpr auto patience = std::chrono::milliseconds(100);

std::atomic<int64_t> pending{0};
std::atomic<uint64_t> left{0};
// `left` when nothing had run for so long that the host went on: it goes on until something has.
std::atomic<uint64_t> stuck_at{UINT64_MAX};
std::atomic<int> waiting{0};

// Never destroyed: streams may still run when the process ends.
struct Room {
  std::mutex mutex;
  std::condition_variable changed;
};
Room& room() {
  static auto* one = new Room();
  return *one;
}

// Operators may need Python while the host waits: functions of the program that stand for kernels do.
class WithoutGil {
 public:
  WithoutGil() : state_(Py_IsInitialized() && !finished() && PyGILState_Check() ? PyEval_SaveThread() : nullptr) {}
  ~WithoutGil() {
    if (state_ != nullptr) PyEval_RestoreThread(state_);
  }
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;

 private:
  PyThreadState* state_;
};

void wait_for_room() {
  if (stuck_at.load(std::memory_order_relaxed) == left.load(std::memory_order_relaxed)) return;
  WithoutGil released;
  auto& r = room();
  std::unique_lock<std::mutex> lock(r.mutex);
  waiting.fetch_add(1);
  auto has_room = [] { return pending.load() <= most_pending / 2; };
  for (auto seen = left.load(); !r.changed.wait_for(lock, patience, has_room); seen = left.load()) {
    if (left.load() == seen) {
      stuck_at.store(seen);
      break;
    }
  }
  waiting.fetch_sub(1);
}

}  // namespace

int64_t pending_operators() { return pending.load(std::memory_order_relaxed); }

void operator_enqueued() {
  if (pending.load(std::memory_order_relaxed) >= most_pending) wait_for_room();
  pending.fetch_add(1, std::memory_order_relaxed);
}

void operator_left() {
  left.fetch_add(1, std::memory_order_relaxed);
  if (pending.fetch_sub(1) != most_pending / 2 + 1 || waiting.load() == 0) return;
  auto& r = room();
  { std::lock_guard<std::mutex> lock(r.mutex); }  // a waiter between its look at `pending` and its sleep is heard
  r.changed.notify_all();
}

}  // namespace halstream_torch
