// torch's handle of a collective: waited for by streams, and by the host where it asks for that.
#pragma once

#include "collectives.h"
#include "streams.h"

#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

namespace halstream_torch {

// Why a group carries nothing more: as NCCL, which aborts its communicator with the first error.
class Abortion {
 public:
  // The first call counts. Without a reason the program asked for it.
  void set(std::string reason);
  // Raises torch's error if the group was aborted.
  void check(int rank) const;

 private:
  mutable std::mutex mutex_;
  bool aborted_ = false;
  std::string reason_;
};

// What an operation that is enqueued has in common with the work that stands for it.
struct Outcome {
  std::mutex mutex;
  bool done = false;
  std::string error;  // the text for torch's DistBackendError; empty if there is none
};

struct Launch {
  std::string name;  // "nccl:all_reduce": what reports show
  c10d::OpType type;
  DeviceIndex device;
  int peer = -1;  // of sends and receives, which have a stream for each peer
  std::vector<at::Tensor> inputs, outputs;
  std::vector<at::Tensor> also_read;
  Milliseconds timeout;
  bool async = true;
  std::tuple<std::string, std::string> group;  // its name and description, for profiles of NCCL's groups
  Terms terms;                                 // empty for sends and receives
};

class CommunicationWork final : public c10d::Work {
 public:
  // `title` is what profilers show; none for a part of a coalesced operation.
  CommunicationWork(
      int rank, const Launch& launch, const char* title, std::string text, uint64_t sequence, bool host_waits);
  ~CommunicationWork() override;

  // Say where the operation was enqueued, and where its outcome will be.
  void launched(halstream_id stream, std::shared_ptr<Outcome> outcome);

  bool isCompleted() override;
  bool isSuccess() const override;
  std::exception_ptr exception() const override;
  std::vector<at::Tensor> result() override { return outputs_; }
  void synchronize() override;
  void blockCurrentStream() override { synchronize(); }
  bool wait(Milliseconds timeout) override;
  void abort() override {}

  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override { return future_; }
  c10::intrusive_ptr<c10::ivalue::Future> getFutureResult() override { return future_; }
  uint64_t getSequencenumber() const override { return sequence_; }

 private:
  bool wait_unrecorded(Milliseconds timeout);
  void wait_on_host(Milliseconds timeout);

  DeviceIndex device_;
  Milliseconds timeout_;
  std::tuple<std::string, std::string> group_;
  std::string text_;
  uint64_t sequence_;
  bool host_waits_, async_, waited_ = false;
  halstream_id stream_ = 0, event_ = 0;
  std::shared_ptr<Outcome> outcome_ = std::make_shared<Outcome>();
  c10::intrusive_ptr<c10::ivalue::Future> future_;
  std::vector<at::Tensor> inputs_, outputs_;
};

}  // namespace halstream_torch
