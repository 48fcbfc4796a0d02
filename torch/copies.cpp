#include "copies.h"

#include "counters.h"
#include "host_accesses.h"
#include "layouts.h"
#include "pinned.h"
#include "private_pools.h"
#include "sites.h"
#include "streams.h"
#include "task.h"
#include "unsupported.h"

#include "ATen/ops/quantize_per_channel.h"
#include "ATen/ops/quantize_per_tensor.h"

#include <ATen/ExpandUtils.h>
#include <ATen/core/LegacyTypeDispatch.h>

namespace halstream_torch {

namespace {

const Operator& copy_operator() {
  static const auto* op = new Operator(c10::Dispatcher::singleton().findSchemaOrThrow("aten::copy_", ""));
  return *op;
}

// Both sides are the same bytes in the same order: a plain copy of memory, as a GPU's copy engine makes it.
bool same_layout(const at::Tensor& a, const at::Tensor& b) {
  return a.scalar_type() == b.scalar_type() && a.is_conj() == b.is_conj() && a.is_neg() == b.is_neg() &&
      a.sizes() == b.sizes() && a.strides() == b.strides() && a.is_non_overlapping_and_dense();
}

// The program's own memory can take part in stream order: it is pinned, and a copy needs no other layout of it. What
// is converted meanwhile is converted on the device, as torch does for copies that do not block.
bool in_order(const at::Tensor& host, const at::Tensor& other) {
  return is_pinned(host.const_data_ptr()) && (host.is_contiguous() || same_layout(host, other));
}

// What `x[1] = 5` copies where torch makes a tensor of the number (before 2.15): the program has never seen it, and the
// destination is a part of one of the program's.
bool is_number_of_call(const at::Tensor& destination, const at::Tensor& source) {
  return source.dim() == 0 && source.unsafeGetTensorImpl()->pyobj_slot()->load_pyobj() == nullptr &&
      !source.is_cuda() && destination.storage().use_count() > 1;
}

class Copy {
 public:
  Copy(at::Tensor& destination, const at::Tensor& source)
      : destination_(destination), source_(source),
        captured_(capture_of(current_stream((source.is_cuda() ? source : destination).device().index())) != 0),
        listening_(captured_ || core->listening() != 0) {}

  void within_devices();
  void to_device(bool non_blocking);
  void to_host(bool non_blocking);

 private:
  // Runs `to.copy_(from)` on the stream.
  TaskPointer task(const at::Tensor& to, const at::Tensor& from) {
    auto task = new_task();
    task->op = &copy_operator();
    task->stack = {to, from, false};
    return task;
  }
  // Pinned memory of the program. A graph keeps it, since each launch copies from or to it.
  at::Tensor in_place(const at::Tensor& pinned) const { return captured_ ? pinned.detach() : cpu_alias(pinned); }
  void record(const at::Tensor& pinned, halstream_id stream) const {
    if (!captured_) record_pinned(pinned.storage().data_ptr(), stream);
  }
  void read(const at::Tensor& tensor) {
    if (listening_) add_ranges(ranges_, tensor, HALSTREAM_READ);
  }
  void write(const at::Tensor& tensor) {
    if (listening_) add_ranges(ranges_, tensor, HALSTREAM_WRITE);
  }
  // Each launch of a graph copies from or to the memory itself: torch refuses pageable memory in a capture, blocking or
  // not, and does not invalidate the capture.
  void require_pinned_in_capture(const at::Tensor& host) const {
    TORCH_CHECK(
        !captured_ || host.is_pinned() || is_number_of_call(destination_, source_),
        "Cannot copy between CPU and CUDA tensors during CUDA graph capture unless the CPU tensor is pinned. Please use "
        "tensor.pin_memory() or allocate the tensor with pin_memory=True, or make the copy before the capture.");
  }

  at::Tensor& destination_;
  const at::Tensor& source_;
  bool captured_;   // the copy becomes a part of a graph
  bool listening_;  // somebody needs the ranges and the place of the call
  Ranges ranges_;
};

void Copy::within_devices() {
  auto from = source_.device().index(), to = destination_.device().index();
  auto stream = current_stream(from);
  auto other = current_stream(to);
  // Between devices the copy runs on the source's current stream, between two barriers with the destination's.
  if (from != to) check(core->stream_wait_stream(stream, other));
  read(source_);
  write(destination_);
  enqueue(stream, task(cpu_alias(destination_), cpu_alias(source_)), ranges_, current_site());
  if (from != to) check(core->stream_wait_stream(other, stream));
}

void Copy::to_device(bool non_blocking) {
  require_pinned_in_capture(source_);
  auto stream = current_stream(destination_.device().index());
  write(destination_);
  auto to = cpu_alias(destination_);
  if (!non_blocking) {
    read(source_);
    host_waits("aten::copy_", destination_.device().index());
    auto blocking = task(to, source_.detach());
    run_and_wait(stream, *blocking, ranges_, current_site());
    return;
  }
  if (in_order(source_, destination_)) {
    read(source_);
    enqueue(stream, task(to, in_place(source_)), ranges_, current_site());
    record(source_, stream);
    return;
  }
  // Pageable memory is staged before the call returns, and so is memory of another layout: the program may change
  // the source afterwards. CUDA stages a source that needs no other layout itself, in the order of the stream's
  // earlier copies to it.
  bool staged_in_order = same_layout(source_, destination_) &&
      stream_of_pageable_copy(source_.const_data_ptr()) == stream;
  if (listening_ && !staged_in_order) {
    Ranges host;
    add_ranges(host, source_, HALSTREAM_READ);
    for (const auto& range : host) {
      auto rows = range.rows > 1 ? range.rows : 1;
      check(core->host_access(range.start, (rows - 1) * range.pitch + range.bytes, HALSTREAM_READ));
    }
  }
  WithoutHostAccesses declared_above;
  enqueue(stream, task(to, source_.clone()), ranges_, current_site());
}

void Copy::to_host(bool non_blocking) {
  require_pinned_in_capture(destination_);
  auto stream = current_stream(source_.device().index());
  read(source_);
  write(destination_);
  if (non_blocking && in_order(destination_, source_)) {
    enqueue(stream, task(in_place(destination_), cpu_alias(source_)), ranges_, current_site());
    record(destination_, stream);
    return;
  }
  // A copy to pageable memory, or to another layout, is done when the call returns. With non_blocking neither torch
  // nor CUDA documents that: the program may not rely on it.
  if (!non_blocking) host_waits("aten::copy_", source_.device().index());
  auto blocking = task(destination_.detach(), cpu_alias(source_));
  run_and_wait(stream, *blocking, ranges_, current_site(), non_blocking ? Wait::undocumented : Wait::documented);
  if (non_blocking) note_pageable_copy(destination_, stream);
}

}  // namespace

at::Tensor& copy_(at::Tensor& destination, const at::Tensor& source, bool non_blocking) {
  if (destination.is_same(source)) return destination;
  for (const auto* tensor : {static_cast<const at::Tensor*>(&destination), &source}) {
    TORCH_CHECK_NOT_IMPLEMENTED(
        tensor->layout() == c10::kStrided && (tensor->is_cuda() || tensor->is_cpu()), "aten::copy_ with a tensor of ",
        tensor->device(), " and layout ", tensor->layout(), " is not supported on halstream's CUDA device",
        kExplanation);
  }
  at::AutoDispatchBelowADInplaceOrView without_autograd;
  at::Tensor expanded = source;
  if (source.sizes() != destination.sizes()) {
    auto sizes = at::infer_size(destination.sizes(), source.sizes());
    TORCH_CHECK(
        at::IntArrayRef(sizes) == destination.sizes(), "output with shape ", destination.sizes(),
        " doesn't match the broadcast shape ", sizes);
    expanded = source.expand(destination.sizes());
  }
  if (destination.numel() == 0) return destination;
  counters().operators.fetch_add(1, std::memory_order_relaxed);
  Copy copy(destination, expanded);
  if (destination.is_cuda() && source.is_cuda()) {
    copy.within_devices();
  } else if (destination.is_cuda()) {
    copy.to_device(non_blocking || is_number_of_call(destination, source));
  } else {
    copy.to_host(non_blocking);
  }
  return destination;
}

at::Tensor& copy_quantized(at::Tensor& destination, const at::Tensor& source, bool non_blocking) {
  TORCH_CHECK(
      destination.is_quantized(),
      "Copying from quantized Tensor to non-quantized Tensor is not allowed, please use dequantize to get a float Tensor "
      "from a quantized Tensor");
  if (!source.is_quantized()) {
    auto quantized = destination.qscheme() == at::kPerTensorAffine
        ? at::quantize_per_tensor(source, destination.q_scale(), destination.q_zero_point(), destination.scalar_type())
        : at::quantize_per_channel(
              source, destination.q_per_channel_scales(), destination.q_per_channel_zero_points(),
              destination.q_per_channel_axis(), destination.scalar_type());
    return copy_quantized(destination, quantized, non_blocking);
  }
  TORCH_CHECK(
      destination.qscheme() == source.qscheme() && destination.scalar_type() == source.scalar_type(),
      "Quantized Copy only works with same quantization type and scheme");
  auto from = parts_of(source), to = parts_of(destination);
  for (size_t i = 0; i < to.size(); i++) to[i].copy_(from[i], non_blocking);
  take_quantizer(destination, source);
  return destination;
}

}  // namespace halstream_torch
