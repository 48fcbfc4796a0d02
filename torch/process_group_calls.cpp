// The collectives of `Communication`: what is checked, and which steps they consist of.
#include "process_group.h"

namespace halstream_torch {

namespace {

using c10d::OpType;
using Tensors = std::vector<at::Tensor>;

void check_tensor(const at::Tensor& tensor) {
  TORCH_CHECK_VALUE(
      tensor.is_cuda() && tensor.layout() == c10::kStrided, "Tensors must be CUDA and dense");
  TORCH_CHECK_VALUE(tensor.is_contiguous(tensor.suggest_memory_format()), "Tensors must be contiguous");
}

void check_tensors(const Tensors& tensors) {
  TORCH_CHECK_VALUE(!tensors.empty(), "Tensor list must be nonempty");
  for (const auto& tensor : tensors) {
    check_tensor(tensor);
    TORCH_CHECK_VALUE(
        tensor.device() == tensors[0].device(), "Expected list of tensors on the same device");
  }
}

const at::Tensor& only(const Tensors& tensors) {
  TORCH_CHECK_VALUE(tensors.size() == 1, "Expecting one tensor only but got ", tensors.size());
  check_tensor(tensors[0]);
  return tensors[0];
}

void check_root(int64_t root, int size) {
  TORCH_CHECK_VALUE(root >= 0 && root < size, "invalid root rank: ", root);
}

// The tensor that multiplies before a sum lies on the device, too.
Tensors factors_of(const c10d::ReduceOp& op) {
  if (op != c10d::ReduceOp::PREMUL_SUM || !op.supplement_) return {};
  const auto* data = static_cast<const c10d::PreMulSumSupplement*>(op.supplement_.get());
  return data->tensor_factor.defined() && data->tensor_factor.is_cuda() ? Tensors{data->tensor_factor} : Tensors{};
}

Tensors chunks(const at::Tensor& tensor, int count) {
  // Not at::chunk, which may give fewer.
  auto flat = tensor.detach().as_strided({tensor.numel()}, {1});
  return flat.tensor_split(count);
}

std::string from_rank(int64_t root) { return c10::str("from rank ", root); }

const char* name_of(const c10d::ReduceOp& op) {
  switch (op) {
    case c10d::ReduceOp::SUM: return "sum";
    case c10d::ReduceOp::AVG: return "average";
    case c10d::ReduceOp::PRODUCT: return "product";
    case c10d::ReduceOp::MIN: return "minimum";
    case c10d::ReduceOp::MAX: return "maximum";
    case c10d::ReduceOp::BAND: return "and";
    case c10d::ReduceOp::BOR: return "or";
    case c10d::ReduceOp::BXOR: return "xor";
    default: return "sum of multiples";
  }
}

std::string reduced(const c10d::ReduceOp& op, const at::Tensor& tensor) {
  return c10::str(name_of(op), " of ", tensor.scalar_type());
}

// The rows of the tensor that belong to each rank.
Tensors rows_of_ranks(const at::Tensor& tensor, const std::vector<int64_t>& sizes, int count) {
  c10d::checkSplitSizes(sizes, tensor, count);
  if (sizes.empty()) return chunks(tensor, count);
  return tensor.detach().split_with_sizes(sizes, 0);
}

}  // namespace

WorkPointer Communication::broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) {
  auto& tensor = only(tensors);
  check_root(options.rootRank, size_);
  auto what = describe("broadcast", OpType::BROADCAST, options.timeout, options.asyncOp);
  what.device = tensor.device().index();
  // The root only reads.
  (options.rootRank == rank_ ? what.inputs : what.outputs) = {tensor};
  what.terms.rest = from_rank(options.rootRank);
  if (options.rootRank == rank_) what.terms.send_to_all(size_, bytes_in(tensor));
  what.terms.receive(static_cast<int>(options.rootRank), size_, bytes_in(tensor));
  auto work = launch_or_collect(
      what, {broadcast_step(inner_.get(), tensor, static_cast<int>(options.rootRank), what.timeout)});
  return work;
}

WorkPointer Communication::allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) {
  auto& tensor = only(tensors);
  auto what = describe("all_reduce", OpType::ALLREDUCE, options.timeout, options.asyncOp);
  what.device = tensor.device().index();
  what.inputs = what.outputs = {tensor};
  what.also_read = factors_of(options.reduceOp);
  what.terms.rest = reduced(options.reduceOp, tensor);
  what.terms.send_to_all(size_, bytes_in(tensor));
  what.terms.receive_from_all(size_, bytes_in(tensor));
  return launch_or_collect(what, {allreduce_step(inner_.get(), shape(options.timeout), tensor, options.reduceOp)});
}

WorkPointer Communication::allreduce_coalesced(
    Tensors& tensors, const c10d::AllreduceCoalescedOptions& options) {
  check_tensors(tensors);
  auto what = describe("allreduce_coalesced", OpType::COALESCED, options.timeout, options.asyncOp);
  what.device = tensors[0].device().index();
  what.inputs = what.outputs = tensors;
  what.also_read = factors_of(options.reduceOp);
  what.terms.rest = reduced(options.reduceOp, tensors[0]);
  std::vector<Step> steps;
  for (auto& tensor : tensors) {
    what.terms.send_to_all(size_, bytes_in(tensor));
    what.terms.receive_from_all(size_, bytes_in(tensor));
    steps.push_back(allreduce_step(inner_.get(), shape(options.timeout), tensor, options.reduceOp));
  }
  return launch_or_collect(what, std::move(steps));
}

WorkPointer Communication::reduce(Tensors& tensors, const c10d::ReduceOptions& options) {
  auto& tensor = only(tensors);
  check_root(options.rootRank, size_);
  auto what = describe("reduce", OpType::REDUCE, options.timeout, options.asyncOp);
  what.device = tensor.device().index();
  what.inputs = {tensor};
  if (options.rootRank == rank_) what.outputs = {tensor};
  what.also_read = factors_of(options.reduceOp);
  auto root = static_cast<int>(options.rootRank);
  what.terms.rest = c10::str(reduced(options.reduceOp, tensor), " to rank ", root);
  what.terms.send(root, size_, bytes_in(tensor));
  if (root == rank_) what.terms.receive_from_all(size_, bytes_in(tensor));
  return launch_or_collect(what, {reduce_step(inner_.get(), shape(options.timeout), tensor, options.reduceOp, root)});
}

WorkPointer Communication::allgather(
    std::vector<Tensors>& outputs, Tensors& inputs, const c10d::AllgatherOptions& options) {
  auto& input = only(inputs);
  TORCH_CHECK_VALUE(
      outputs.size() == 1 && outputs[0].size() == static_cast<size_t>(size_),
      "Tensor list input to all_gather must match number of collective participants");
  check_tensors(outputs[0]);
  auto what = describe("all_gather", OpType::ALLGATHER, options.timeout, options.asyncOp);
  what.device = input.device().index();
  what.inputs = {input};
  what.outputs = outputs[0];
  what.terms.send_to_all(size_, bytes_in(input));
  for (auto rank : c10::irange(size_)) what.terms.receive(rank, size_, bytes_in(outputs[0][rank]));
  return launch_or_collect(what, {allgather_step(inner_.get(), shape(options.timeout), outputs[0], input)});
}

WorkPointer Communication::_allgather_base(
    at::Tensor& output, at::Tensor& input, const c10d::AllgatherOptions& options) {
  Tensors outputs{output}, inputs{input};
  return allgather_into_tensor_coalesced(outputs, inputs, options);
}

WorkPointer Communication::allgather_into_tensor_coalesced(
    Tensors& outputs, Tensors& inputs, const c10d::AllgatherOptions& options) {
  check_tensors(inputs);
  check_tensors(outputs);
  TORCH_CHECK_VALUE(inputs.size() == outputs.size(), "as many outputs as inputs are needed");
  auto what = describe("_all_gather_base", OpType::_ALLGATHER_BASE, options.timeout, options.asyncOp);
  what.device = inputs[0].device().index();
  what.inputs = inputs;
  what.outputs = outputs;
  std::vector<Step> steps;
  for (auto i : c10::irange(inputs.size())) {
    TORCH_CHECK_TYPE(
        inputs[i].dtype() == outputs[i].dtype(), "output tensor must have the same type as input tensor");
    TORCH_CHECK_VALUE(
        inputs[i].numel() * size_ == outputs[i].numel(), "output tensor size must be equal to world_size times input tensor size");
    what.terms.send_to_all(size_, bytes_in(inputs[i]));
    what.terms.receive_from_all(size_, bytes_in(inputs[i]));
    steps.push_back(allgather_step(inner_.get(), shape(options.timeout), chunks(outputs[i], size_), inputs[i]));
  }
  return launch_or_collect(what, std::move(steps));
}

WorkPointer Communication::allgather_coalesced(
    std::vector<Tensors>& outputs, Tensors& inputs, const c10d::AllgatherOptions& options) {
  check_tensors(inputs);
  auto what = describe("all_gather_coalesced", OpType::ALLGATHER_COALESCED, options.timeout, options.asyncOp);
  what.device = inputs[0].device().index();
  what.inputs = inputs;
  std::vector<Step> steps;
  for (auto i : c10::irange(inputs.size())) {
    Tensors from_ranks;
    for (auto& list : outputs) from_ranks.push_back(list.at(i));
    what.outputs.insert(what.outputs.end(), from_ranks.begin(), from_ranks.end());
    what.terms.send_to_all(size_, bytes_in(inputs[i]));
    for (auto rank : c10::irange(from_ranks.size())) {
      what.terms.receive(static_cast<int>(rank), size_, bytes_in(from_ranks[rank]));
    }
    steps.push_back(allgather_step(inner_.get(), shape(options.timeout), from_ranks, inputs[i]));
  }
  return launch_or_collect(what, std::move(steps));
}

WorkPointer Communication::gather(
    std::vector<Tensors>& outputs, Tensors& inputs, const c10d::GatherOptions& options) {
  auto& input = only(inputs);
  check_root(options.rootRank, size_);
  Tensors parts;
  if (options.rootRank == rank_) {
    TORCH_CHECK_VALUE(
        outputs.size() == 1 && outputs[0].size() == static_cast<size_t>(size_),
        "Incorrect output list size ", outputs.empty() ? 0 : outputs[0].size(), ". Output list size should be ", size_,
        ", same as size of the process group.");
    parts = outputs[0];
    check_tensors(parts);
  }
  auto what = describe("gather", OpType::GATHER, options.timeout, options.asyncOp);
  what.device = input.device().index();
  what.inputs = {input};
  what.outputs = parts;
  auto root = static_cast<int>(options.rootRank);
  what.terms.rest = c10::str("to rank ", root);
  what.terms.send(root, size_, bytes_in(input));
  for (auto rank : c10::irange(parts.size())) what.terms.receive(static_cast<int>(rank), size_, bytes_in(parts[rank]));
  return launch_or_collect(what, {gather_step(inner_.get(), shape(options.timeout), parts, input, root)});
}

WorkPointer Communication::scatter(
    Tensors& outputs, std::vector<Tensors>& inputs, const c10d::ScatterOptions& options) {
  auto& output = only(outputs);
  check_root(options.rootRank, size_);
  Tensors parts;
  if (options.rootRank == rank_) {
    TORCH_CHECK_VALUE(
        inputs.size() == 1 && inputs[0].size() == static_cast<size_t>(size_),
        "Incorrect input list size ", inputs.empty() ? 0 : inputs[0].size(), ". Input list size should be ", size_,
        ", same as size of the process group.");
    parts = inputs[0];
    check_tensors(parts);
  }
  auto what = describe("scatter", OpType::SCATTER, options.timeout, options.asyncOp);
  what.device = output.device().index();
  what.inputs = parts;
  what.outputs = {output};
  auto root = static_cast<int>(options.rootRank);
  what.terms.rest = from_rank(root);
  what.terms.receive(root, size_, bytes_in(output));
  for (auto rank : c10::irange(parts.size())) what.terms.send(static_cast<int>(rank), size_, bytes_in(parts[rank]));
  return launch_or_collect(what, {scatter_step(inner_.get(), shape(options.timeout), output, parts, root)});
}

WorkPointer Communication::reduce_scatter(
    Tensors& outputs, std::vector<Tensors>& inputs, const c10d::ReduceScatterOptions& options) {
  auto& output = only(outputs);
  TORCH_CHECK_VALUE(
      inputs.size() == 1 && inputs[0].size() == static_cast<size_t>(size_),
      "Tensor list input to reduce_scatter must match number of collective participants");
  check_tensors(inputs[0]);
  auto what = describe("reduce_scatter", OpType::REDUCE_SCATTER, options.timeout, options.asyncOp);
  what.device = output.device().index();
  what.inputs = inputs[0];
  what.outputs = {output};
  what.also_read = factors_of(options.reduceOp);
  what.terms.rest = reduced(options.reduceOp, output);
  what.terms.receive_from_all(size_, bytes_in(output));
  for (auto rank : c10::irange(size_)) what.terms.send(rank, size_, bytes_in(inputs[0][rank]));
  return launch_or_collect(
      what, {reduce_scatter_step(inner_.get(), shape(options.timeout), output, inputs[0], options.reduceOp)});
}

WorkPointer Communication::_reduce_scatter_base(
    at::Tensor& output, at::Tensor& input, const c10d::ReduceScatterOptions& options) {
  Tensors outputs{output}, inputs{input};
  return reduce_scatter_tensor_coalesced(outputs, inputs, options);
}

WorkPointer Communication::reduce_scatter_tensor_coalesced(
    Tensors& outputs, Tensors& inputs, const c10d::ReduceScatterOptions& options) {
  check_tensors(inputs);
  check_tensors(outputs);
  TORCH_CHECK_VALUE(inputs.size() == outputs.size(), "as many outputs as inputs are needed");
  auto what = describe("_reduce_scatter_base", OpType::_REDUCE_SCATTER_BASE, options.timeout, options.asyncOp);
  what.device = inputs[0].device().index();
  what.inputs = inputs;
  what.outputs = outputs;
  what.also_read = factors_of(options.reduceOp);
  what.terms.rest = reduced(options.reduceOp, outputs[0]);
  std::vector<Step> steps;
  for (auto i : c10::irange(inputs.size())) {
    TORCH_CHECK_TYPE(
        inputs[i].dtype() == outputs[i].dtype(), "input tensor must be the same type as the output tensor.");
    TORCH_CHECK_VALUE(
        inputs[i].numel() == outputs[i].numel() * size_,
        "input tensor must be the same size as output size times world size");
    what.terms.send_to_all(size_, bytes_in(outputs[i]));
    what.terms.receive_from_all(size_, bytes_in(outputs[i]));
    steps.push_back(reduce_scatter_step(
        inner_.get(), shape(options.timeout), outputs[i], chunks(inputs[i], size_), options.reduceOp));
  }
  return launch_or_collect(what, std::move(steps));
}

WorkPointer Communication::alltoall_base(
    at::Tensor& output, at::Tensor& input, std::vector<int64_t>& output_sizes, std::vector<int64_t>& input_sizes,
    const c10d::AllToAllOptions& options) {
  check_tensor(output);
  check_tensor(input);
  TORCH_CHECK(input.dtype() == output.dtype(), "Tensors are not equal in data type");
  auto what = describe("all_to_all", OpType::ALLTOALL_BASE, options.timeout, options.asyncOp);
  what.device = input.device().index();
  what.inputs = {input};
  what.outputs = {output};
  auto to = rows_of_ranks(output, output_sizes, size_), from = rows_of_ranks(input, input_sizes, size_);
  for (auto rank : c10::irange(size_)) {
    what.terms.send(rank, size_, bytes_in(from[rank]));
    what.terms.receive(rank, size_, bytes_in(to[rank]));
  }
  return launch_or_collect(what, {alltoall_step(inner_.get(), shape(options.timeout), to, from)});
}

WorkPointer Communication::alltoall(Tensors& outputs, Tensors& inputs, const c10d::AllToAllOptions& options) {
  TORCH_CHECK_VALUE(
      inputs.size() == static_cast<size_t>(size_) && outputs.size() == inputs.size(),
      "Tensor lists of all_to_all must match number of collective participants");
  check_tensors(inputs);
  check_tensors(outputs);
  auto what = describe("all_to_all", OpType::ALLTOALL, options.timeout, options.asyncOp);
  what.device = inputs[0].device().index();
  what.inputs = inputs;
  what.outputs = outputs;
  for (auto rank : c10::irange(size_)) {
    what.terms.send(rank, size_, bytes_in(inputs[rank]));
    what.terms.receive(rank, size_, bytes_in(outputs[rank]));
  }
  return launch_or_collect(what, {alltoall_step(inner_.get(), shape(options.timeout), outputs, inputs)});
}

WorkPointer Communication::send(Tensors& tensors, int to, int given_tag) {
  auto& tensor = only(tensors);
  auto what = describe("send", OpType::SEND, c10d::kUnsetTimeout, true);
  what.device = tensor.device().index();
  what.peer = to;
  what.inputs = {tensor};
  if (to == rank_ && coalescing_ > 0) return launch_or_collect(what, {own_step(Step::Kind::send, tensor)});
  return launch_or_collect(what, {send_step(inner_.get(), tensor, to, tag(given_tag))});
}

WorkPointer Communication::recv(Tensors& tensors, int from, int given_tag) {
  auto& tensor = only(tensors);
  auto what = describe("recv", OpType::RECV, c10d::kUnsetTimeout, true);
  what.device = tensor.device().index();
  what.peer = from;
  what.outputs = {tensor};
  if (from == rank_ && coalescing_ > 0) return launch_or_collect(what, {own_step(Step::Kind::receive, tensor)});
  return launch_or_collect(what, {receive_step(inner_.get(), tensor, from, tag(given_tag))});
}

WorkPointer Communication::barrier(const c10d::BarrierOptions& options) {
  auto what = describe("barrier", OpType::BARRIER, options.timeout, options.asyncOp);
  if (options.device && options.device->is_cuda() && options.device->has_index()) {
    what.device = options.device->index();
  } else if (!options.device_ids.empty()) {
    what.device = resolve_device(static_cast<DeviceIndex>(options.device_ids[0]));
  }
  auto* inner = inner_.get();
  auto timeout = what.timeout;
  Step step;
  step.start = [inner, timeout] {
    c10d::BarrierOptions own;
    own.timeout = timeout;
    return inner->barrier(own);
  };
  return launch_or_collect(what, {step});
}

}  // namespace halstream_torch
