// What a collective does on the CPU: calls of the backend that carries it (gloo) on tensors of the host.
#pragma once

#include <torch/csrc/distributed/c10d/Backend.hpp>

#include <functional>
#include <string>
#include <vector>

namespace halstream_torch {

using Milliseconds = std::chrono::milliseconds;
using WorkPointer = c10::intrusive_ptr<c10d::Work>;
using BackendPointer = c10::intrusive_ptr<c10d::Backend>;

// One part of an operation. Collectives are started and waited for in turn; of several sends and receives all are
// started before one is waited for, so that the order of a group of them does not matter.
struct Step {
  enum class Kind { collective, send, receive };
  Kind kind = Kind::collective;
  std::function<WorkPointer()> start;  // may return null: nothing to wait for
  std::function<void()> finish;        // after it; may be empty
  at::Tensor own;                      // instead of them: what a rank sends to, or receives from, itself
  int peer = -1, tag = 0;              // of a message to or from another rank
};

struct Shape {
  int rank, size;
  Milliseconds timeout;
};

// What all ranks must say alike of a collective before its bytes travel.
struct Terms {
  std::string kind;                     // "all_reduce"
  std::string rest;                     // "sum of Float"; the same in all ranks, as the kind
  std::vector<int64_t> sends, receives;  // bytes to and from each rank; empty for none
  std::string text;                     // for errors: "all_reduce 7 of group dp (Float [4]), at train.py:41"

  // Each adds to what is there.
  void send(int rank, int size, int64_t bytes);
  void receive(int rank, int size, int64_t bytes);
  void send_to_all(int size, int64_t bytes);
  void receive_from_all(int size, int64_t bytes);
  void add(const Terms& other);
};
int64_t bytes_in(const at::Tensor& tensor);

// Lets the ranks of a group tell each other their terms, and fails in all of them where these do not fit: gloo would hang,
// end the process or mix up values.
void agree(c10d::Backend* inner, const Shape& group, const Terms& own);

// A tensor's memory as numbers of the type on the CPU, in the order of memory.
at::Tensor memory_of(const at::Tensor& tensor);
at::Tensor bytes_of(const at::Tensor& tensor);

// All tensors are CUDA tensors; what is kept of them is their memory. `inner` outlives the steps' runs.
Step broadcast_step(c10d::Backend* inner, const at::Tensor& tensor, int root, Milliseconds timeout);
Step allreduce_step(c10d::Backend* inner, const Shape& group, const at::Tensor& tensor, const c10d::ReduceOp& op);
Step reduce_step(c10d::Backend* inner, const Shape& group, const at::Tensor& tensor, const c10d::ReduceOp& op, int root);
Step allgather_step(
    c10d::Backend* inner, const Shape& group, const std::vector<at::Tensor>& outputs, const at::Tensor& input);
Step gather_step(
    c10d::Backend* inner, const Shape& group, const std::vector<at::Tensor>& outputs, const at::Tensor& input, int root);
Step scatter_step(
    c10d::Backend* inner, const Shape& group, const at::Tensor& output, const std::vector<at::Tensor>& inputs, int root);
// Reduces each of the inputs, one for each rank, and keeps that of this rank.
Step reduce_scatter_step(
    c10d::Backend* inner, const Shape& group, const at::Tensor& output, const std::vector<at::Tensor>& inputs,
    const c10d::ReduceOp& op);
// The parts are in bytes.
Step alltoall_step(
    c10d::Backend* inner, const Shape& group, const std::vector<at::Tensor>& outputs,
    const std::vector<at::Tensor>& inputs);
Step send_step(c10d::Backend* inner, const at::Tensor& tensor, int to, int tag);
Step receive_step(c10d::Backend* inner, const at::Tensor& tensor, int from, int tag);
Step own_step(Step::Kind kind, const at::Tensor& tensor);

// Runs the steps; a receive fails if it takes longer than `timeout`. Sends keep a copy of what they send and are not
// waited for: their works are added to `sent`.
void run_steps(std::vector<Step>& steps, Milliseconds timeout, std::vector<WorkPointer>& sent);

}  // namespace halstream_torch
