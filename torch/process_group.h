// The backend of torch.distributed for CUDA tensors: each collective is an operation on a stream of the group's own,
// and a work's `wait` lets the current stream wait for it, as NCCL's does. The bytes travel over a backend for the CPU.
#pragma once

#include "communication_work.h"
#include "ranks.h"

#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>

namespace halstream_torch {

class Communication : public c10d::Backend {
 public:
  // `inner` is a backend for the CPU with the same ranks. A work's `wait` blocks the host if `host_waits`, as
  // gloo's does with CUDA tensors.
  Communication(BackendPointer inner, std::string name, Milliseconds timeout, bool high_priority, bool host_waits);
  ~Communication() override;

  const std::string getBackendName() const override { return name_; }
  bool supportsCoalescing() const override { return true; }
  bool supportsSplitting() const override { return true; }
  BackendPointer split(
      const c10::intrusive_ptr<c10d::Store>& store, const std::vector<int>& ranks,
      const c10::intrusive_ptr<Options>& options) override;
  // How often this group was split, parts without this rank included.
  int64_t splits() const { return splits_; }
  Milliseconds timeout() const { return timeout_; }
  bool high_priority() const { return high_priority_; }
  // The ranks of the default group that this group has; none for all. Profiles show them.
  void name_ranks(const std::vector<uint64_t>& ranks);
  void startCoalescing() override;
  WorkPointer endCoalescing() override;
  uint64_t getSequenceNumberForGroup() override { return sequence_; }
  void setSequenceNumberForGroup() override {}
  void setTimeout(Milliseconds timeout) override { timeout_ = timeout; }
  void enableCollectivesTiming() override {}
  void abort() override;
  void shutdown() override;
  c10::intrusive_ptr<Options> getBackendOptions() override;

  WorkPointer broadcast(std::vector<at::Tensor>& tensors, const c10d::BroadcastOptions& options) override;
  WorkPointer allreduce(std::vector<at::Tensor>& tensors, const c10d::AllreduceOptions& options) override;
  WorkPointer allreduce_coalesced(
      std::vector<at::Tensor>& tensors, const c10d::AllreduceCoalescedOptions& options) override;
  WorkPointer reduce(std::vector<at::Tensor>& tensors, const c10d::ReduceOptions& options) override;
  WorkPointer allgather(
      std::vector<std::vector<at::Tensor>>& outputs, std::vector<at::Tensor>& inputs,
      const c10d::AllgatherOptions& options) override;
  WorkPointer _allgather_base(at::Tensor& output, at::Tensor& input, const c10d::AllgatherOptions& options) override;
  WorkPointer allgather_coalesced(
      std::vector<std::vector<at::Tensor>>& outputs, std::vector<at::Tensor>& inputs,
      const c10d::AllgatherOptions& options) override;
  WorkPointer allgather_into_tensor_coalesced(
      std::vector<at::Tensor>& outputs, std::vector<at::Tensor>& inputs,
      const c10d::AllgatherOptions& options) override;
  WorkPointer gather(
      std::vector<std::vector<at::Tensor>>& outputs, std::vector<at::Tensor>& inputs,
      const c10d::GatherOptions& options) override;
  WorkPointer scatter(
      std::vector<at::Tensor>& outputs, std::vector<std::vector<at::Tensor>>& inputs,
      const c10d::ScatterOptions& options) override;
  WorkPointer reduce_scatter(
      std::vector<at::Tensor>& outputs, std::vector<std::vector<at::Tensor>>& inputs,
      const c10d::ReduceScatterOptions& options) override;
  WorkPointer _reduce_scatter_base(
      at::Tensor& output, at::Tensor& input, const c10d::ReduceScatterOptions& options) override;
  WorkPointer reduce_scatter_tensor_coalesced(
      std::vector<at::Tensor>& outputs, std::vector<at::Tensor>& inputs,
      const c10d::ReduceScatterOptions& options) override;
  WorkPointer alltoall_base(
      at::Tensor& output, at::Tensor& input, std::vector<int64_t>& output_sizes, std::vector<int64_t>& input_sizes,
      const c10d::AllToAllOptions& options) override;
  WorkPointer alltoall(
      std::vector<at::Tensor>& outputs, std::vector<at::Tensor>& inputs, const c10d::AllToAllOptions& options) override;
  WorkPointer send(std::vector<at::Tensor>& tensors, int to, int tag) override;
  WorkPointer recv(std::vector<at::Tensor>& tensors, int from, int tag) override;
  WorkPointer barrier(const c10d::BarrierOptions& options) override;

 protected:
  // A group of the same class for the ranks of `inner`.
  virtual c10::intrusive_ptr<Communication> part(BackendPointer inner, Milliseconds timeout, bool high_priority) const;

 private:
  struct Sends;
  using StreamKey = std::pair<DeviceIndex, int>;  // device, and peer or -1

  Milliseconds limit(Milliseconds given) const { return given.count() < 0 ? timeout_ : given; }
  Shape shape(Milliseconds given) const { return {rank_, size_, limit(given)}; }
  Launch describe(const char* operation, c10d::OpType type, Milliseconds timeout, bool async) const;
  std::string describe_work(const Launch& what, uint64_t sequence) const;
  CollectiveCall describe_call(const Launch& what, uint64_t sequence, uint32_t site) const;
  bool is_nccl() const { return name_ != "gloo"; }
  // Enqueues, and lets a profiler that listens know of it by torch's operator `record_param_comms`.
  WorkPointer launch(Launch what, std::vector<Step> steps);
  WorkPointer enqueue(Launch what, std::vector<Step> steps, uint64_t sequence);
  WorkPointer launch_or_collect(Launch what, std::vector<Step> steps);
  halstream_id stream_for(const StreamKey& key);
  halstream_id synchronized_stream(const Launch& what);
  int tag(int given) const { return is_nccl() ? 0 : given; }  // NCCL matches by order alone

  BackendPointer inner_;
  std::string name_;
  Milliseconds timeout_;
  bool high_priority_, host_waits_;
  RankGroupPointer ranks_of_machine_;
  // Of collectives, and of messages between two ranks, of which other ranks of the group know nothing.
  std::atomic<uint64_t> sequence_{0}, messages_{0};
  std::atomic<int64_t> splits_{0};
  struct {
    int start = 0, stride = 1;
  } ranks_;
  std::mutex mutex_;
  std::map<StreamKey, halstream_id> streams_;
  DeviceIndex latest_device_ = -1;  // of a collective
  std::shared_ptr<Abortion> abortion_ = std::make_shared<Abortion>();
  std::shared_ptr<Sends> sends_;
  int coalescing_ = 0;
  std::optional<Launch> collected_;
  std::vector<Step> collected_steps_;
};

// The same, as a class of its own for programs that ask whether a backend is NCCL's.
class NcclCommunication final : public Communication {
 public:
  using Communication::Communication;

 protected:
  c10::intrusive_ptr<Communication> part(BackendPointer inner, Milliseconds timeout, bool high_priority) const override;
};

// What ProcessGroupNCCL.Options says about the priority of streams; nothing for options of other backends.
std::optional<bool> high_priority_of(const c10::intrusive_ptr<c10d::Backend::Options>& options);

}  // namespace halstream_torch
