#include "core.h"

#include "backward_order.h"

#include <Python.h>

#include <c10/util/Exception.h>
#include <torch/csrc/Exceptions.h>

#include <atomic>

namespace halstream_torch {

const halstream_api* core = nullptr;
static std::atomic<bool> process_is_ending{false};

bool finished() noexcept { return process_is_ending.load(std::memory_order_acquire); }
void finish() noexcept { process_is_ending.store(true, std::memory_order_release); }

// cudaErrorAssert: what a CUDA kernel gives that finds wrong values.
static constexpr int32_t device_side_assert = 710;

// CUDA's words for an error of a kernel.
static const char* words_of(int32_t number) {
  switch (number) {
    case 700: return "an illegal memory access was encountered";
    case 716: return "misaligned address";
    case 719: return "unspecified launch failure";
    default: return "device-side assert triggered";
  }
}

void raise_error(int code) {
  const char* text = core->error_text();
  std::string words = text != nullptr ? text : "";
  switch (code) {
    case HALSTREAM_DEVICE_LOST:
    case HALSTREAM_FUNCTION_FAILED: {
      if (words.find(work_of_nccl) != std::string::npos) C10_THROW_ERROR(DistBackendError, words);
      auto number = core->error_number();
      throw c10::AcceleratorError(
          {__func__, __FILE__, static_cast<uint32_t>(__LINE__)}, number != 0 ? number : device_side_assert,
          std::string("CUDA error: ") + words_of(number) + ": " + words +
              "\nCUDA kernel errors might be asynchronously reported at some other API call, "
              "so the stacktrace below might be incorrect.\n");
    }
    case HALSTREAM_OUT_OF_MEMORY:
      TORCH_CHECK_WITH(OutOfMemoryError, false, "CUDA out of memory. ", words);
    case HALSTREAM_INTERRUPTED:
      throw python_error();  // Python's exception is set: Ctrl-C, or the report of a wait that cannot end
    case HALSTREAM_FORKED:
      TORCH_CHECK(
          false,
          "Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, you must use the "
          "'spawn' start method");
    case HALSTREAM_NOT_SUPPORTED:
      TORCH_CHECK_NOT_IMPLEMENTED(false, words);
    case HALSTREAM_CAPTURE: {
      // CUDA's words first: programs look for them.
      bool later = words.find("was invalidated") != std::string::npos;
      const char* of_cuda = later ? "operation failed due to a previous error during capture"
                                  : "operation not permitted when stream is capturing";
      throw c10::AcceleratorError(
          {__func__, __FILE__, static_cast<uint32_t>(__LINE__)}, later ? 901 : 900,
          std::string("CUDA error: ") + of_cuda + ": " + words);
    }
    case HALSTREAM_INVALID_VALUE:
      TORCH_CHECK_VALUE(false, words);
    default:
      throw c10::AcceleratorError(
          {__func__, __FILE__, static_cast<uint32_t>(__LINE__)}, code, "CUDA error: " + words);
  }
}

PlaceOfCall::PlaceOfCall() : held_(core->listening() != 0 && Py_IsInitialized() && !finished()) {
  if (held_) state_ = static_cast<int>(PyGILState_Ensure());
}
PlaceOfCall::~PlaceOfCall() {
  if (held_) PyGILState_Release(static_cast<PyGILState_STATE>(state_));
}

namespace {

// The runtime runs handlers of signals in a wait that is made with the GIL (it releases the GIL meanwhile), so
// that Ctrl-C ends it. torch releases the GIL before most waits; it is taken again for the call.
class WithGil {
 public:
  WithGil() : has_python_(Py_IsInitialized() && !finished()) {
    if (has_python_) state_ = PyGILState_Ensure();
  }
  ~WithGil() {
    if (has_python_) PyGILState_Release(state_);
  }
  bool held() const { return has_python_; }
  WithGil(const WithGil&) = delete;
  WithGil& operator=(const WithGil&) = delete;

 private:
  bool has_python_;
  PyGILState_STATE state_{};
};

template <class Wait>
void wait(Wait call, bool orders = true) {
  WithGil gil;
  check(call());
  if (orders && gil.held()) note_backward_wait();
}

}  // namespace

void synchronize_stream(halstream_id stream) {
  wait([&] { return core->stream_synchronize(stream, -1); });
}
void drain_stream(halstream_id stream) {
  wait([&] { return core->stream_drain(stream, -1); }, false);
}
void synchronize_device(int device) {
  wait([&] { return core->device_synchronize(device, -1); });
}
void synchronize_event(halstream_id event) {
  wait([&] { return core->event_synchronize(event, -1); });
}

int wait_for_event(halstream_id event, int64_t limit) {
  WithGil gil;
  return core->event_synchronize(event, limit);
}

}  // namespace halstream_torch
