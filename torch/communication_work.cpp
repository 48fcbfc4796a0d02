#include "communication_work.h"

#include "allocator.h"

#include <pybind11/pybind11.h>
#include <torch/csrc/distributed/c10d/ParamCommsUtils.hpp>

#include <cstdlib>

namespace halstream_torch {

static bool blocking_wait_chosen() {
  for (const char* name : {"TORCH_NCCL_BLOCKING_WAIT", "NCCL_BLOCKING_WAIT"}) {
    const char* value = std::getenv(name);
    if (value != nullptr && *value != '\0' && std::string(value) != "0") return true;
  }
  return false;
}

void Abortion::set(std::string reason) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (aborted_) return;
  aborted_ = true;
  reason_ = std::move(reason);
}

void Abortion::check(int rank) const {
  std::lock_guard<std::mutex> lock(mutex_);
  if (!aborted_) return;
  auto why = reason_.empty() ? std::string() : "Original reason for failure was: " + reason_;
  C10_THROW_ERROR(DistBackendError, c10::str("NCCL communicator was aborted on rank ", rank, ". ", why));
}

CommunicationWork::CommunicationWork(
    int rank, const Launch& launch, const char* title, std::string text, uint64_t sequence, bool host_waits)
    : Work(rank, launch.type, title, launch.inputs.empty() ? launch.outputs : launch.inputs), device_(launch.device),
      timeout_(launch.timeout), group_(launch.group), text_(std::move(text)), sequence_(sequence),
      host_waits_(host_waits), async_(launch.async),
      inputs_(launch.inputs), outputs_(launch.outputs) {
  inputs_.insert(inputs_.end(), launch.also_read.begin(), launch.also_read.end());
}

CommunicationWork::~CommunicationWork() {
  if (event_ == 0 || finished()) return;
  // Nobody waited: the memory stays until the operation is done.
  for (auto* tensors : {&inputs_, &outputs_}) {
    for (auto& tensor : *tensors) {
      if (!waited_ && tensor.is_cuda()) record_stream(tensor.storage().data_ptr(), stream_of(device_, stream_));
    }
  }
  core->event_close(event_);
}

void CommunicationWork::launched(halstream_id stream, std::shared_ptr<Outcome> outcome) {
  stream_ = stream;
  outcome_ = std::move(outcome);
  check(core->event_record_new(stream, 0, &event_));
  auto before = exchange_stream(device_, stream);
  future_ = c10::make_intrusive<c10::ivalue::Future>(
      c10::ListType::create(c10::TensorType::get()),
      std::vector<c10::Device>{c10::Device(c10::DeviceType::CUDA, device_)});
  future_->markCompleted(c10::IValue(outputs_));
  exchange_stream(device_, before);
  if (recordFunctionEndCallback_) recordFunctionEndCallback_();
}

bool CommunicationWork::isCompleted() {
  if (event_ == 0 || exception()) return true;
  int done = 0;
  check(core->event_query(event_, &done));
  return done != 0;
}

bool CommunicationWork::isSuccess() const {
  std::lock_guard<std::mutex> lock(outcome_->mutex);
  return outcome_->done && outcome_->error.empty();
}

std::exception_ptr CommunicationWork::exception() const {
  std::lock_guard<std::mutex> lock(outcome_->mutex);
  if (outcome_->error.empty()) return nullptr;
  return std::make_exception_ptr(
      c10::DistBackendError({__func__, __FILE__, static_cast<uint32_t>(__LINE__)}, outcome_->error));
}

void CommunicationWork::synchronize() {
  if (event_ == 0) return;
  check(core->stream_wait_event(current_stream(device_), event_));
  waited_ = true;
  inputs_.clear();
}

bool CommunicationWork::wait(Milliseconds timeout) {
  if (event_ == 0) return true;
  if (!async_ || std::get<0>(group_).empty() || !at::hasCallbacks()) return wait_unrecorded(timeout);
  RECORD_PARAM_COMMS(
      std::make_tuple(static_cast<int64_t>(sequence_), c10d::isP2POp(opType_)), group_, rank_, "wait", 0, 0, at::kByte,
      std::vector<int64_t>(), std::vector<int64_t>(), -1, -1, 1);
  return wait_unrecorded(timeout);
}

bool CommunicationWork::wait_unrecorded(Milliseconds timeout) {
  synchronize();
  static const bool blocking = blocking_wait_chosen();
  if (blocking || host_waits_ || timeout != kNoTimeout || opType_ == c10d::OpType::BARRIER) {
    wait_on_host(timeout != kNoTimeout ? timeout : timeout_);
  }
  return true;
}

void CommunicationWork::wait_on_host(Milliseconds timeout) {
  // The operation ends by itself at its own limit. A wait without one is among those whose stalls are reported.
  int code = wait_for_event(event_, timeout == timeout_ ? -1 : std::chrono::nanoseconds(timeout).count());
  if (code == HALSTREAM_OK) return;
  if (code == HALSTREAM_INTERRUPTED) {
    pybind11::gil_scoped_acquire held;
    throw pybind11::error_already_set();
  }
  std::string text;
  if (code == HALSTREAM_TIMEOUT) {
    text = c10::str(
        "[Rank ", rank_, "] Work ", c10d::opTypeToString(opType_), " (SeqNum=", sequence_,
        ") timed out in blocking wait after ", timeout.count(), " milliseconds: ", text_);
  } else if (code == HALSTREAM_FUNCTION_FAILED) {
    std::lock_guard<std::mutex> lock(outcome_->mutex);
    text = outcome_->error;
  }
  if (text.empty()) check(code);
  if (host_waits_) C10_THROW_ERROR(Error, text);
  C10_THROW_ERROR(DistBackendError, text);
}

}  // namespace halstream_torch
