// What CPU operators read and write in memory that copies of streams use, declared as accesses of the host: for the
// sanitizer. That is pinned memory, and pageable memory to which a copy was made that orders nothing for the host.
#pragma once

#include <halstream.h>

#include <ATen/core/Tensor.h>

namespace halstream_torch {

// Begins or ends declaring them. The first call puts a kernel before those of the CPU that touch data.
void watch_host_accesses(bool on);

// Notes that a copy to `host`, which is pageable, was made on `stream` without a documented wait. The note ends with
// the tensor's storage, or when nothing is declared any more.
void note_pageable_copy(const at::Tensor& host, halstream_id stream);
// The stream of the latest such copy to the storage that has `address`, 0 without one.
halstream_id stream_of_pageable_copy(const void* address);

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
