#include "task.h"

#include "backlog.h"
#include "forks.h"
#include "host_accesses.h"
#include "indexed.h"
#include "kernel_memory.h"
#include "private_pools.h"
#include "sites.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <iterator>

namespace halstream_torch {

namespace {

void run_kernel(Task& task, Stack& stack) {
  const auto& op = *task.op;
  auto seed = task.draw.seeds ? task.draw.seeds->now.at(task.draw.place) : task.seed;
  if (task.directly) {
    op.direct(stack, task.outputs, seed);
  } else if (op.substitute != nullptr) {
    op.substitute(stack, seed);
  } else {
    if (task.random && op.generator >= 0) stack[op.generator] = at::detail::createCPUGenerator(seed);
    (task.into_outputs ? *op.out_variant : op.handle).callBoxed(stack);
  }
}

c10::SmallVector<int64_t, 5> without_ones(at::IntArrayRef sizes) {
  c10::SmallVector<int64_t, 5> rest;
  std::copy_if(sizes.begin(), sizes.end(), std::back_inserter(rest), [](int64_t size) { return size != 1; });
  return rest;
}

void copy_result(const Task& task, size_t index, at::Tensor result) {
  if (index >= task.outputs.size()) return;
  const auto& output = task.outputs[index];
  if (!output.defined() || !result.defined()) return;
  // In libraries kernels and what tells their shapes differ in dimensions of size 1.
  if (result.dim() != output.dim() && without_ones(result.sizes()) == without_ones(output.sizes())) {
    result = result.reshape(output.sizes());
  }
  if (result.sizes() != output.sizes()) {
    // Kernels leave results empty that only CUDA's backward kernels use (saved statistics, reserved space).
    TORCH_CHECK(
        index > 0 && result.numel() == 0, "the CPU kernel gave a result of sizes ", result.sizes(),
        " where torch's meta kernel said ", output.sizes());
    std::memset(output.mutable_data_ptr(), 0, output.nbytes());
    return;
  }
  // Statistics of 16-bit numbers have 32 bits on CUDA.
  bool numbers = c10::isFloatingType(result.scalar_type()) && c10::isFloatingType(output.scalar_type());
  TORCH_CHECK(
      numbers || result.scalar_type() == output.scalar_type(), "the CPU kernel gave a result of type ", result.scalar_type(),
      " where torch's meta kernel said ", output.scalar_type());
  output.copy_(result);
}

void copy_results(const Task& task, const Stack& stack) {
  if (task.into_outputs || task.directly || task.outputs.empty()) return;
  size_t index = 0;
  for (const auto& value : stack) {
    if (value.isTensor()) {
      copy_result(task, index++, value.toTensor());
    } else if (value.isTensorList()) {
      for (const auto& item : value.toListRef()) copy_result(task, index++, item.toTensor());
    }
  }
}

// Tells what an operator with an index accesses. Where that cannot be said, what it was enqueued with counts.
void hand_in(const Task& task) {
  if (!task.beside || core->listening() == 0) return;
  auto ranges = *task.beside;
  auto access = task.op->arguments[0].writes ? HALSTREAM_READ | HALSTREAM_WRITE : HALSTREAM_READ;
  if (add_indexed(ranges, task.op->indexing, task.stack, access)) check(core->hand_in(ranges.data(), ranges.size()));
}

void run_checked(Task& task) {
  at::AutoDispatchBelowADInplaceOrView without_autograd;
  c10::AutoGradMode without_gradients(false);
  Stack again;  // kernels take the arguments from the stack, and other launches need them, too
  if (task.captured) again = task.stack;
  auto& stack = task.captured ? again : task.stack;
  hand_in(task);
  run_kernel(task, stack);
  if (!task.waited_for) copy_results(task, stack);
}

// Called while an exception is handled: writes its text, or keeps it for the caller who waits.
int failed(Task& task, char* text, size_t room) {
  if (task.waited_for) {
    task.failure = std::current_exception();
    return 0;
  }
  try {
    throw;
  } catch (const c10::Error& error) {
    snprintf(text, room, "%s", error.what_without_backtrace());
  } catch (const std::exception& error) {
    snprintf(text, room, "%s", error.what());
  } catch (...) {
    snprintf(text, room, "the kernel threw something that is no std::exception");
  }
  return 1;
}

// On a thread of the runtime, without the GIL.
int run_task(void* argument, char* text, size_t room) {
  auto& task = *static_cast<Task*>(argument);
  RunningKernel running;
  KernelMemoryScope memory;
  WithoutHostAccesses on_a_stream;
  try {
    run_checked(task);
    return 0;
  } catch (...) {
    return failed(task, text, room);
  }
}

void release_task(void* argument) {
  auto* task = static_cast<Task*>(argument);
  bool was_pending = !task->captured;
  DropTask()(task);
  if (was_pending) operator_left();
}

void enqueue(halstream_id stream, Task* task, const Ranges& ranges, uint32_t site) {
  halstream_operation operation{};
  operation.size = sizeof operation;
  operation.name = task->op->name.c_str();
  operation.site = site;
  operation.flags = HALSTREAM_LOSES_DEVICE | (task->beside ? HALSTREAM_HANDS_IN : 0);
  // Reports show the place of the forward call, so that the name has to say which of the two it is, and in which
  // module that call was made.
  std::string in_words;
  if (site != 0 && core->listening() != 0) {
    const auto& module = module_of_latest_site();
    in_words = task->op->name + (latest_site_is_of_forward_call() ? " (backward)" : "") +
        (module.empty() ? "" : " in " + module);
    operation.name = in_words.c_str();
  }
  operation.ranges = ranges.data();
  operation.count = ranges.size();
  operation.run = &run_task;
  operation.argument = task;
  operation.release = &release_task;
  task->captured = capture_of(stream) != 0;
  if (!task->captured) operator_enqueued();
  int code = core->enqueue(stream, &operation);
  if (code != HALSTREAM_OK) {
    if (!task->captured) operator_left();
    raise_error(code);
  }
}

}  // namespace

void enqueue(halstream_id stream, TaskPointer task, const Ranges& ranges, uint32_t site) {
  enqueue(stream, task.get(), ranges, site);
  task.release();
}

void run_and_wait(halstream_id stream, Task& task, const Ranges& ranges, uint32_t site, Wait wait) {
  task.waited_for = true;
  task.owners.fetch_add(1);
  TaskPointer of_the_stream(&task);
  enqueue(stream, std::move(of_the_stream), ranges, site);
  try {
    wait == Wait::documented ? synchronize_stream(stream) : drain_stream(stream);
  } catch (c10::Error& error) {
    if (task.captured) error.add_context(task.op->name + " waits for its stream, which is capturing");
    throw;
  }
  if (task.failure) std::rethrow_exception(task.failure);
}

}  // namespace halstream_torch
