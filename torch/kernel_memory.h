// Memory for what CPU kernels allocate while they run on a stream: temporaries, and results that are copied.
#pragma once

namespace halstream_torch {

// Lets torch's CPU allocator keep such memory for the next kernel. The C library returns large blocks to the system
// each time, and the page faults of the next ones can take longer than the kernels. Other threads allocate as ever.
void keep_memory_of_kernels();

// In a forked child, where the lock may be held by a thread that is not there: what was kept stays where it is.
void leave_memory_of_kernels();

// What the calling thread allocates meanwhile is a kernel's.
class KernelMemoryScope {
 public:
  KernelMemoryScope();
  ~KernelMemoryScope();
  KernelMemoryScope(const KernelMemoryScope&) = delete;
  KernelMemoryScope& operator=(const KernelMemoryScope&) = delete;

 private:
  bool before_;
};

}  // namespace halstream_torch
