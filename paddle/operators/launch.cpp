#include "launch.h"

#include "shared.h"

#include <Python.h>

#include <paddle/phi/backends/context_pool.h>
#include <paddle/phi/core/enforce.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <stdexcept>

namespace halstream_paddle {

namespace {

// The memory of a tensor; in 3.0 it has no function for it.
struct Opened : phi::DenseTensor {
  static const std::shared_ptr<phi::Allocation>& holder(const phi::DenseTensor& tensor) {
    return tensor.*(&Opened::holder_);
  }
};

// How many elements a tensor's memory spans from its first to its last.
uint64_t span(const phi::DenseTensorMeta& meta) {
  uint64_t last = 0;
  for (int i = 0; i < meta.dims.size(); i++) {
    if (meta.dims[i] <= 0) return 0;
    if (i < meta.strides.size()) last += static_cast<uint64_t>(meta.dims[i] - 1) * std::max<int64_t>(meta.strides[i], 0);
  }
  return last + 1;
}

const phi::DeviceContext& cpu_context() {
  static auto* context = phi::DeviceContextPool::Instance().Get(phi::CPUPlace());
  return *context;
}

// Where the program made the call. Paddle releases Python's lock before it calls kernels.
uint32_t site() {
  if (core()->listening() == 0 || !Py_IsInitialized()) return 0;
  auto state = PyGILState_Ensure();
  auto found = core()->site_here();
  PyGILState_Release(state);
  return found;
}

void release(void* argument) { delete static_cast<Task*>(argument); }

}  // namespace

int run_task(void* argument, char* text, size_t room) {
  try {
    static_cast<Task*>(argument)->run(cpu_context());
    return 0;
  } catch (const std::exception& error) {
    std::snprintf(text, room, "%s", error.what());
  } catch (...) {
    std::snprintf(text, room, "an exception that is none of C++'s own");
  }
  return 1;
}

phi::DenseTensor Task::alias(const phi::DenseTensor& tensor, uint32_t access) {
  auto& holder = Opened::holder(tensor);
  std::shared_ptr<phi::Allocation> memory;
  for (auto& [known, made] : memories_)
    if (known == holder.get()) memory = made;
  if (memory == nullptr) {
    memory = std::make_shared<phi::Allocation>(holder->ptr(), holder->size(), phi::CPUPlace());
    memories_.emplace_back(holder.get(), memory);
  }
  auto bytes = span(tensor.meta()) * phi::SizeOf(tensor.dtype());
  auto start = reinterpret_cast<uint64_t>(holder->ptr()) + tensor.meta().offset;
  if (bytes != 0) ranges_.push_back({start, bytes, 0, 0, access, 0});
  return phi::DenseTensor(memory, tensor.meta());
}

phi::DenseTensor Task::input(const phi::DenseTensor& tensor) {
  if (!tensor.has_allocation()) return tensor;
  if (tensor.place().GetType() != phi::AllocationType::CUSTOM) return tensor;  // of the host: kept by its own count
  return alias(tensor, HALSTREAM_READ);
}

phi::DenseTensor Task::output(phi::DenseTensor* tensor) {
  if (tensor->dtype() == phi::DataType::UNDEFINED || tensor->numel() < 0) {
    // Something that only GPUs use, as the reserve space of a normalization; kernels for CPUs leave it alone.
    outputs_.emplace_back(nullptr, 0);
    return phi::DenseTensor();
  }
  context_.Alloc(tensor, tensor->dtype());
  auto made = alias(*tensor, HALSTREAM_WRITE);
  outputs_.emplace_back(static_cast<char*>(Opened::holder(made)->ptr()) + made.meta().offset,
                        made.numel() * phi::SizeOf(made.dtype()));
  return made;
}

void Task::check(const phi::DenseTensor& output) const {
  auto [given, bytes] = outputs_.at(checked_++);
  if (given == nullptr || bytes == 0 || !output.has_allocation()) return;
  auto* now = static_cast<char*>(Opened::holder(output)->ptr()) + output.meta().offset;
  if (now == given) return;
  // Some kernels take new memory where an output has the memory of an input.
  if (output.numel() * phi::SizeOf(output.dtype()) != bytes)
    throw std::runtime_error("the kernel made an output of another size than its shape says");
  std::memcpy(given, now, bytes);
}

const phi::DenseTensor& Held<const std::vector<const phi::TensorBase*>&>::dense(const phi::TensorBase* tensor) {
  if (!phi::DenseTensor::classof(tensor)) throw std::runtime_error("a tensor that is not dense");
  return *static_cast<const phi::DenseTensor*>(tensor);
}

void prepare_contiguous(const phi::DenseTensor& input, phi::DenseTensor* output) {
  auto meta = input.meta();
  meta.strides = meta.calc_strides(meta.dims);
  meta.offset = 0;
  output->set_meta(meta);
}

void prepare_strided_copy(const phi::DenseTensor& input, const std::vector<int64_t>& dims,
                          const std::vector<int64_t>& strides, int64_t offset, phi::DenseTensor* output) {
  auto meta = input.meta();
  meta.dims = common::make_ddim(dims);
  meta.strides = common::make_ddim(strides);
  meta.offset = offset;
  output->set_meta(meta);
}

void Task::enqueue(std::unique_ptr<Task> task, const char* name) {
  if (forked()) {
    task->run(cpu_context());
    return;
  }
  halstream_operation operation{};
  operation.size = sizeof operation;
  operation.name = name;
  operation.site = site();
  operation.ranges = task->ranges_.data();
  operation.count = task->ranges_.size();
  operation.run = run_task;
  operation.release = release;
  operation.argument = task.get();
  auto stream = static_cast<halstream_id>(reinterpret_cast<intptr_t>(task->context_.stream()));
  if (core()->enqueue(stream, &operation) != HALSTREAM_OK) throw std::runtime_error(core()->error_text());
  task.release();
}

void* Operator::kernel(phi::DataType type) const {
  auto index = static_cast<size_t>(type);
  auto* found = index < sizeof kernels / sizeof *kernels ? kernels[index] : nullptr;
  if (found == nullptr) throw std::runtime_error(std::string(name) + " has no kernel for CPUs of this type");
  return found;
}

std::vector<Operator*>& operators() {
  static auto* all = new std::vector<Operator*>();
  return *all;
}

}  // namespace halstream_paddle
