// The runtime below this module: the function table of halstream.h, and its errors as torch's.
#pragma once

#include <halstream.h>

#include <string>

namespace halstream_torch {

// The function table; null until `install` has been called.
extern const halstream_api* core;

// After `finish` nothing calls the runtime: destructors that run while the process ends only return.
bool finished() noexcept;
void finish() noexcept;

// How the texts of collectives of NCCL's groups begin, in errors. One of them is torch's DistBackendError.
inline constexpr const char* work_of_nccl = "WorkNCCL(";

// Raises the exception that torch raises for `code`, with the runtime's text of the calling thread's latest error.
[[noreturn]] void raise_error(int code);

// Holds Python's lock while a listener is on, so that a call of the runtime gets the place that it was made at.
// torch releases the lock before it calls operators.
class PlaceOfCall {
 public:
  PlaceOfCall();
  ~PlaceOfCall();
  PlaceOfCall(const PlaceOfCall&) = delete;
  PlaceOfCall& operator=(const PlaceOfCall&) = delete;

 private:
  bool held_;
  int state_ = 0;
};

// Raises what `raise_error` does where a call has failed; while the process ends nothing is left to wait for, or to say.
inline void check(int code) {
  if (__builtin_expect(code != HALSTREAM_OK, 0) && !finished()) raise_error(code);
}

// Waits without a limit. They may be called with the GIL or without it.
void synchronize_stream(halstream_id stream);
// Waits where torch and CUDA document no wait: it orders nothing for the sanitizer.
void drain_stream(halstream_id stream);
void synchronize_device(int device);
void synchronize_event(halstream_id event);
// Waits for at most `limit` nanoseconds, without one if that is negative, and returns the runtime's code.
int wait_for_event(halstream_id event, int64_t limit);

}  // namespace halstream_torch
