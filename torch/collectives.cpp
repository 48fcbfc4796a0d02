#include "collectives.h"

#include "alias.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <deque>

namespace halstream_torch {

namespace {

using c10d::ReduceOp;
using Tensors = std::vector<at::Tensor>;

at::Tensor plain_memory(const at::Tensor& tensor, c10::ScalarType type) {
  auto item = static_cast<int64_t>(c10::elementSize(type));
  auto bytes = tensor.numel() * static_cast<int64_t>(tensor.element_size());
  void* data = bytes != 0 ? tensor.unsafeGetTensorImpl()->mutable_data() : nullptr;
  auto storage = c10::make_intrusive<c10::StorageImpl>(
      c10::StorageImpl::use_byte_size_t(), bytes, c10::DataPtr(data, c10::Device(c10::DeviceType::CPU)), nullptr,
      /*resizable=*/false);
  auto impl = c10::make_intrusive<c10::TensorImpl>(
      c10::Storage(std::move(storage)), c10::DispatchKeySet(c10::DispatchKey::CPU), c10::scalarTypeToTypeMeta(type));
  impl->set_sizes_contiguous({bytes / item});
  return at::Tensor(std::move(impl));
}

// The type in which gloo reduces, for a type of NCCL's.
c10::ScalarType reduced_as(c10::ScalarType type) {
  switch (type) {
    case at::kFloat8_e4m3fn:
    case at::kFloat8_e5m2:
      return at::kFloat;
    case at::kBool:
      return at::kByte;
    default:
      return c10::isComplexType(type) ? c10::toRealValueType(type) : type;
  }
}

// Sums for averages and for sums of multiples; of truth values a sum is their maximum, as NCCL has it.
ReduceOp::RedOpType reduced_by(const ReduceOp& op, c10::ScalarType type) {
  auto kind = static_cast<ReduceOp::RedOpType>(op);
  if (kind == ReduceOp::AVG || kind == ReduceOp::PREMUL_SUM) kind = ReduceOp::SUM;
  if (type == at::kBool) {
    TORCH_CHECK_TYPE(op != ReduceOp::AVG, "Cannot use ReduceOp.AVG with boolean inputs");
    if (kind == ReduceOp::SUM) kind = ReduceOp::MAX;
  }
  return kind;
}

// A reduction's numbers: as they are given to gloo, and what is done before and after.
struct Reduction {
  Reduction(const at::Tensor& tensor, const ReduceOp& by, int size)
      : type(tensor.scalar_type()), op(by), kind(reduced_by(by, type)), size(size) {
    TORCH_CHECK(
        !c10::isComplexType(type) || c10d::isComplexViewAsRealAllowed(by), "all_reduce does not support complex tensors "
        "with this operation");
    if (by == ReduceOp::PREMUL_SUM) {
      const auto* data = static_cast<const c10d::PreMulSumSupplement*>(by.supplement_.get());
      factor = data->double_factor;
      if (data->tensor_factor.defined()) factors = memory_of(data->tensor_factor);
    }
  }
  // What gloo reduces: the numbers themselves where it can, else a copy.
  at::Tensor prepare(const at::Tensor& numbers) const {
    auto given = reduced_as(type) == numbers.scalar_type() ? numbers : numbers.to(reduced_as(type));
    if (op == ReduceOp::PREMUL_SUM) factors.defined() ? given.mul_(factors) : given.mul_(factor);
    return given;
  }
  void complete(at::Tensor& reduced) const {
    if (op != ReduceOp::AVG) return;
    if (c10::isIntegralType(reduced.scalar_type(), true)) {
      reduced.div_(size, "trunc");
    } else {
      reduced.div_(size);
    }
  }
  at::Tensor memory(const at::Tensor& tensor) const {
    if (type == at::kBool) return bytes_of(tensor);
    return c10::isComplexType(type) ? plain_memory(tensor, c10::toRealValueType(type)) : memory_of(tensor);
  }

  c10::ScalarType type;
  ReduceOp op;
  ReduceOp::RedOpType kind;
  int size;
  double factor = 1;
  at::Tensor factors;
};

WorkPointer allreduce(c10d::Backend* inner, at::Tensor& tensor, ReduceOp::RedOpType kind, Milliseconds timeout) {
  if (tensor.numel() == 0) return {};
  c10d::AllreduceOptions options;
  options.reduceOp = kind;
  options.timeout = timeout;
  Tensors tensors{tensor};
  return inner->allreduce(tensors, options);
}

WorkPointer broadcast(c10d::Backend* inner, const at::Tensor& bytes, int root, Milliseconds timeout) {
  if (bytes.numel() == 0) return {};
  c10d::BroadcastOptions options;
  options.rootRank = root;
  options.timeout = timeout;
  Tensors tensors{bytes};
  return inner->broadcast(tensors, options);
}

Tensors all_bytes(const Tensors& tensors) {
  Tensors all;
  for (const auto& tensor : tensors) all.push_back(bytes_of(tensor));
  return all;
}

bool equal_sizes(const Tensors& tensors) {
  for (const auto& tensor : tensors) {
    if (tensor.numel() != tensors[0].numel()) return false;
  }
  return true;
}

void add_bytes(std::vector<int64_t>& to, int rank, int size, int64_t bytes) {
  to.resize(size);
  to[rank] += bytes;
}

// The terms of a rank as all ranks get them, with the same size in each.
struct Told {
  char kind[160];  // with the rest
  char text[512];
};

std::string kind_of(const Terms& terms) { return terms.rest.empty() ? terms.kind : terms.kind + " " + terms.rest; }

// Whether the bytes that each rank sends are those that the other one expects.
bool fits(const std::vector<int64_t>& bytes, int size) {
  // A row for each rank: what it sends to each, then what it expects from each.
  auto at = [&](int rank, int other, bool expected) { return bytes[(rank * 2 + expected) * size + other]; };
  for (int from = 0; from < size; from++) {
    for (int to = 0; to < size; to++) {
      if (at(from, to, false) != at(to, from, true)) return false;
    }
  }
  return true;
}

std::string mismatch_text(const std::vector<Told>& all) {
  std::string text = "Detected mismatch between collectives on ranks.";
  for (size_t rank = 0; rank < all.size(); rank++) text += c10::str("\n  rank ", rank, " is in ", all[rank].text);
  return text + "\nCall the same collectives, with tensors that fit, in the same order in all ranks of a group.";
}

}  // namespace

void Terms::send(int rank, int size, int64_t bytes) { add_bytes(sends, rank, size, bytes); }
void Terms::receive(int rank, int size, int64_t bytes) { add_bytes(receives, rank, size, bytes); }
void Terms::send_to_all(int size, int64_t bytes) {
  for (int rank = 0; rank < size; rank++) send(rank, size, bytes);
}
void Terms::receive_from_all(int size, int64_t bytes) {
  for (int rank = 0; rank < size; rank++) receive(rank, size, bytes);
}

void Terms::add(const Terms& other) {
  if (other.kind != kind) kind += " and " + other.kind;
  if (other.rest != rest) rest += ", " + other.rest;
  for (auto [to, from] : {std::make_pair(&sends, &other.sends), std::make_pair(&receives, &other.receives)}) {
    to->resize(std::max(to->size(), from->size()));
    for (size_t rank = 0; rank < from->size(); rank++) (*to)[rank] += (*from)[rank];
  }
}

int64_t bytes_in(const at::Tensor& tensor) { return static_cast<int64_t>(tensor.numel() * tensor.element_size()); }

void agree(c10d::Backend* inner, const Shape& group, const Terms& own) {
  auto of_bytes = static_cast<int64_t>(2 * group.size * sizeof(int64_t));
  auto of_rank = of_bytes + static_cast<int64_t>(sizeof(Told));
  auto mine = at::zeros({of_rank}, at::kByte);
  auto* to = static_cast<char*>(mine.data_ptr());
  for (auto* list : {&own.sends, &own.receives}) {
    if (!list->empty()) std::memcpy(to, list->data(), list->size() * sizeof(int64_t));
    to += group.size * sizeof(int64_t);
  }
  Told told{};
  snprintf(told.kind, sizeof told.kind, "%s", kind_of(own).c_str());
  snprintf(told.text, sizeof told.text, "%s", own.text.c_str());
  std::memcpy(to, &told, sizeof told);
  auto everything = at::empty({group.size, of_rank}, at::kByte);
  std::vector<Tensors> outputs{everything.unbind(0)};
  Tensors inputs{mine};
  c10d::AllgatherOptions options;
  options.timeout = group.timeout;
  inner->allgather(outputs, inputs, options)->wait();
  std::vector<int64_t> bytes(2 * group.size * group.size);
  std::vector<Told> all(group.size);
  bool same = true;
  for (int rank = 0; rank < group.size; rank++) {
    const auto* from = static_cast<const char*>(everything[rank].data_ptr());
    std::memcpy(&bytes[2 * rank * group.size], from, of_bytes);
    std::memcpy(&all[rank], from + of_bytes, sizeof(Told));
    same = same && std::strcmp(all[rank].kind, all[0].kind) == 0;
  }
  TORCH_CHECK_WITH(DistBackendError, same && fits(bytes, group.size), mismatch_text(all));
}

at::Tensor memory_of(const at::Tensor& tensor) { return plain_memory(tensor, tensor.scalar_type()); }
at::Tensor bytes_of(const at::Tensor& tensor) { return plain_memory(tensor, at::kByte); }

Step broadcast_step(c10d::Backend* inner, const at::Tensor& tensor, int root, Milliseconds timeout) {
  auto bytes = bytes_of(tensor);
  return {Step::Kind::collective, [=] { return broadcast(inner, bytes, root, timeout); }, {}};
}

Step allreduce_step(c10d::Backend* inner, const Shape& group, const at::Tensor& tensor, const ReduceOp& op) {
  Reduction reduction(tensor, op, group.size);
  auto numbers = reduction.memory(tensor);
  auto reduced = std::make_shared<at::Tensor>();
  return {
      Step::Kind::collective,
      [=] {
        *reduced = reduction.prepare(numbers);
        return allreduce(inner, *reduced, reduction.kind, group.timeout);
      },
      [=] {
        reduction.complete(*reduced);
        if (!reduced->is_same(numbers)) numbers.copy_(*reduced);
      }};
}

Step reduce_step(
    c10d::Backend* inner, const Shape& group, const at::Tensor& tensor, const ReduceOp& op, int root) {
  Reduction reduction(tensor, op, group.size);
  auto numbers = reduction.memory(tensor);
  auto reduced = std::make_shared<at::Tensor>();
  return {
      Step::Kind::collective,
      [=]() -> WorkPointer {
        // gloo uses the tensors of all ranks as scratch, NCCL leaves those of the others as they are.
        *reduced = reduction.prepare(numbers.clone());
        if (reduced->numel() == 0) return {};
        c10d::ReduceOptions options;
        options.reduceOp = reduction.kind;
        options.rootRank = root;
        options.timeout = group.timeout;
        Tensors tensors{*reduced};
        return inner->reduce(tensors, options);
      },
      [=] {
        if (group.rank != root) return;
        reduction.complete(*reduced);
        numbers.copy_(*reduced);
      }};
}

Step allgather_step(c10d::Backend* inner, const Shape& group, const Tensors& outputs, const at::Tensor& input) {
  auto to = all_bytes(outputs);
  auto from = bytes_of(input);
  if (equal_sizes(to)) {
    return {
        Step::Kind::collective,
        [=]() -> WorkPointer {
          if (from.numel() == 0) return {};
          // The input may be one of the outputs.
          std::vector<Tensors> lists{to};
          Tensors inputs{from.clone()};
          c10d::AllgatherOptions options;
          options.timeout = group.timeout;
          return inner->allgather(lists, inputs, options);
        },
        {}};
  }
  return {
      Step::Kind::collective,
      [=]() -> WorkPointer {
        for (int root = 0; root < group.size; root++) {
          if (root == group.rank) at::Tensor(to[root]).copy_(from);
          if (auto work = broadcast(inner, to[root], root, group.timeout)) work->wait();
        }
        return {};
      },
      {}};
}

Step gather_step(
    c10d::Backend* inner, const Shape& group, const Tensors& outputs, const at::Tensor& input, int root) {
  auto to = all_bytes(outputs);
  auto from = bytes_of(input);
  return {
      Step::Kind::collective,
      [=]() -> WorkPointer {
        if (from.numel() == 0) return {};
        std::vector<Tensors> lists;
        if (group.rank == root) lists.push_back(to);
        Tensors inputs{from.clone()};
        c10d::GatherOptions options;
        options.rootRank = root;
        options.timeout = group.timeout;
        return inner->gather(lists, inputs, options);
      },
      {}};
}

Step scatter_step(
    c10d::Backend* inner, const Shape& group, const at::Tensor& output, const Tensors& inputs, int root) {
  auto to = bytes_of(output);
  auto from = all_bytes(inputs);
  return {
      Step::Kind::collective,
      [=]() -> WorkPointer {
        if (to.numel() == 0) return {};
        std::vector<Tensors> lists;
        if (group.rank == root) lists.push_back(from);
        Tensors outputs{to};
        c10d::ScatterOptions options;
        options.rootRank = root;
        options.timeout = group.timeout;
        return inner->scatter(outputs, lists, options);
      },
      {}};
}

Step reduce_scatter_step(
    c10d::Backend* inner, const Shape& group, const at::Tensor& output, const Tensors& inputs, const ReduceOp& op) {
  Reduction reduction(output, op, group.size);
  auto to = reduction.memory(output);
  Tensors from;
  for (const auto& input : inputs) from.push_back(reduction.memory(input));
  auto all = std::make_shared<at::Tensor>();
  return {
      Step::Kind::collective,
      [=] {
        *all = reduction.prepare(at::cat(from));
        return allreduce(inner, *all, reduction.kind, group.timeout);
      },
      [=] {
        int64_t offset = 0;
        for (int rank = 0; rank < group.rank; rank++) offset += from[rank].numel();
        auto mine = all->narrow(0, offset, to.numel());
        reduction.complete(mine);
        to.copy_(mine);
      }};
}

Step alltoall_step(c10d::Backend* inner, const Shape& group, const Tensors& outputs, const Tensors& inputs) {
  auto to = all_bytes(outputs), from = all_bytes(inputs);
  auto received = std::make_shared<at::Tensor>();
  return {
      Step::Kind::collective,
      [=]() -> WorkPointer {
        std::vector<int64_t> to_sizes, from_sizes;
        int64_t total = 0;
        for (const auto& part : to) total += to_sizes.emplace_back(part.numel());
        for (const auto& part : from) from_sizes.push_back(part.numel());
        *received = at::empty({total}, at::kByte);
        auto sent = at::cat(from);
        c10d::AllToAllOptions options;
        options.timeout = group.timeout;
        return inner->alltoall_base(*received, sent, to_sizes, from_sizes, options);
      },
      [=] {
        int64_t offset = 0;
        for (const auto& part : to) {
          at::Tensor(part).copy_(received->narrow(0, offset, part.numel()));
          offset += part.numel();
        }
      }};
}

Step send_step(c10d::Backend* inner, const at::Tensor& tensor, int to, int tag) {
  auto bytes = bytes_of(tensor);
  return {
      Step::Kind::send,
      [=]() -> WorkPointer {
        Tensors tensors{bytes.clone()};
        return inner->send(tensors, to, tag);
      },
      {}, {}, to, tag};
}

Step receive_step(c10d::Backend* inner, const at::Tensor& tensor, int from, int tag) {
  auto bytes = bytes_of(tensor);
  return {
      Step::Kind::receive,
      [=]() -> WorkPointer {
        Tensors tensors{bytes};
        return inner->recv(tensors, from, tag);
      },
      {}, {}, from, tag};
}

Step own_step(Step::Kind kind, const at::Tensor& tensor) { return {kind, {}, {}, bytes_of(tensor)}; }

void run_steps(std::vector<Step>& steps, Milliseconds timeout, std::vector<WorkPointer>& sent) {
  std::deque<at::Tensor> to_itself;
  for (auto& step : steps) {
    if (step.kind != Step::Kind::send) continue;
    if (step.own.defined()) {
      to_itself.push_back(step.own.clone());
    } else {
      sent.push_back(step.start());
    }
  }
  std::vector<WorkPointer> received;
  for (auto& step : steps) {
    if (step.kind != Step::Kind::receive) continue;
    if (!step.own.defined()) {
      received.push_back(step.start());
      continue;
    }
    TORCH_CHECK(
        !to_itself.empty() && to_itself.front().numel() == step.own.numel(),
        "a receive from the own rank needs a send to it, of as many bytes, in the same batch");
    step.own.copy_(to_itself.front());
    to_itself.pop_front();
  }
  for (auto& step : steps) {
    if (step.kind != Step::Kind::collective) continue;
    if (auto work = step.start()) work->wait();
    if (step.finish) step.finish();
  }
  for (auto& work : received) work->wait(timeout);
}

}  // namespace halstream_torch
