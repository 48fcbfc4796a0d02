#include "task.h"

#include "host_accesses.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <c10/core/GradMode.h>

#include <cstdio>
#include <cstring>

namespace halstream_torch {

namespace {

void run_kernel(Task& task) {
  const auto& op = *task.op;
  if (op.substitute != nullptr) {
    op.substitute(task.stack, task.seed);
  } else {
    if (task.random && op.generator >= 0) task.stack[op.generator] = at::detail::createCPUGenerator(task.seed);
    (task.into_outputs ? *op.out_variant : op.handle).callBoxed(task.stack);
  }
}

void copy_result(const Task& task, size_t index, const at::Tensor& result) {
  if (index >= task.outputs.size()) return;
  const auto& output = task.outputs[index];
  if (!output.defined() || !result.defined()) return;
  if (result.sizes() != output.sizes()) {
    // Kernels leave results empty that only CUDA's backward kernels use (saved statistics, reserved space).
    TORCH_CHECK(
        index > 0 && result.numel() == 0, "the CPU kernel gave a result of sizes ", result.sizes(),
        " where torch's meta kernel said ", output.sizes());
    std::memset(output.mutable_data_ptr(), 0, output.nbytes());
    return;
  }
  TORCH_CHECK(
      result.scalar_type() == output.scalar_type(), "the CPU kernel gave a result of type ", result.scalar_type(),
      " where torch's meta kernel said ", output.scalar_type());
  output.copy_(result);
}

void copy_results(const Task& task) {
  if (task.into_outputs || task.outputs.empty()) return;
  size_t index = 0;
  for (const auto& value : task.stack) {
    if (value.isTensor()) {
      copy_result(task, index++, value.toTensor());
    } else if (value.isTensorList()) {
      for (const auto& item : value.toListRef()) copy_result(task, index++, item.toTensor());
    }
  }
}

void run_checked(Task& task) {
  at::AutoDispatchBelowADInplaceOrView without_autograd;
  c10::AutoGradMode without_gradients(false);
  run_kernel(task);
  if (!task.waited_for) copy_results(task);
}

// On a thread of the runtime, without the GIL.
int run(void* argument, char* text, size_t room) {
  auto& task = *static_cast<Task*>(argument);
  WithoutHostAccesses on_a_stream;
  try {
    run_checked(task);
    return 0;
  } catch (const c10::Error& error) {
    if (task.waited_for) {
      task.failure = std::current_exception();
      return 0;
    }
    snprintf(text, room, "%s", error.what_without_backtrace());
  } catch (const std::exception& error) {
    if (task.waited_for) {
      task.failure = std::current_exception();
      return 0;
    }
    snprintf(text, room, "%s", error.what());
  }
  return 1;
}

void release(void* argument) { delete static_cast<Task*>(argument); }

void enqueue(halstream_id stream, Task* task, const Ranges& ranges, uint32_t site) {
  halstream_operation operation{};
  operation.size = sizeof operation;
  operation.name = task->op->name.c_str();
  operation.site = site;
  operation.ranges = ranges.data();
  operation.count = ranges.size();
  operation.run = &run;
  operation.argument = task;
  operation.release = task->waited_for ? nullptr : &release;
  check(core->enqueue(stream, &operation));
}

}  // namespace

void enqueue(halstream_id stream, std::unique_ptr<Task> task, const Ranges& ranges, uint32_t site) {
  enqueue(stream, task.get(), ranges, site);
  task.release();
}

void run_and_wait(halstream_id stream, Task& task, const Ranges& ranges, uint32_t site) {
  task.waited_for = true;
  enqueue(stream, &task, ranges, site);
  synchronize_stream(stream);
  if (task.failure) std::rethrow_exception(task.failure);
}

}  // namespace halstream_torch
