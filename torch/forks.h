// A child of a process has the locks that other threads held when it forked, and nobody who releases them: a kernel
// that runs then can leave torch's own locks, and what it initialises once, unusable in the child.
#pragma once

#include <cstdint>

namespace halstream_torch {

// Around each kernel that a thread of the runtime runs: it does not begin while the process forks.
class RunningKernel {
 public:
  RunningKernel();
  ~RunningKernel();
  RunningKernel(const RunningKernel&) = delete;
  RunningKernel& operator=(const RunningKernel&) = delete;
};

int64_t running_kernels();

// What os.fork() calls, with the GIL. The first one releases it and returns when no kernel of another thread runs,
// or after a second: one that waits for Python, or for another process, may never end.
void before_fork();
void after_fork_in_parent();
void after_fork_in_child();

}  // namespace halstream_torch
