// What CPU operators read and write in pinned memory, declared as accesses of the host: for the sanitizer.
#pragma once

namespace halstream_torch {

// Begins or ends declaring them. The first call puts a kernel before those of the CPU that touch data.
void watch_host_accesses(bool on);

// Keeps what the thread calls meanwhile from being declared: work of streams declares its accesses itself.
class WithoutHostAccesses {
 public:
  WithoutHostAccesses() noexcept;
  ~WithoutHostAccesses();
  WithoutHostAccesses(const WithoutHostAccesses&) = delete;
  WithoutHostAccesses& operator=(const WithoutHostAccesses&) = delete;

 private:
  bool before_;
};

}  // namespace halstream_torch
