#include "forks.h"

#include "kernel_memory.h"

#include <Python.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace halstream_torch {

namespace {

constexpr auto limit = std::chrono::seconds(1);
constexpr auto interval = std::chrono::microseconds(20);

std::atomic<int64_t> running{0};
std::atomic<int> forks{0};  // that have begun and not ended
thread_local int64_t own = 0;

}  // namespace

RunningKernel::RunningKernel() {
  for (;;) {
    running.fetch_add(1);
    auto begun = forks.load();
    if (begun == 0 || own != 0) break;
    running.fetch_sub(1);
    forks.wait(begun);
  }
  own++;
}

RunningKernel::~RunningKernel() {
  own--;
  running.fetch_sub(1);
}

int64_t running_kernels() { return running.load(); }

void before_fork() {
  forks.fetch_add(1);
  if (running.load() <= own) return;
  auto* state = PyEval_SaveThread();
  auto end = std::chrono::steady_clock::now() + limit;
  while (running.load() > own && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(interval);
  PyEval_RestoreThread(state);
}

void after_fork_in_parent() {
  forks.fetch_sub(1);
  forks.notify_all();
}

void after_fork_in_child() {
  leave_memory_of_kernels();
  forks.store(0);
  running.store(own);
}

}  // namespace halstream_torch
