// One operator on its way: CPU tensors on the device's memory, run in stream order on a thread of the runtime.
#pragma once

#include "alias.h"
#include "captures.h"
#include "operators.h"

#include <atomic>
#include <exception>
#include <memory>

namespace halstream_torch {

struct Task {
  const Operator* op = nullptr;
  Stack stack;                  // the arguments as the CPU kernel takes them
  bool into_outputs = false;    // run the operator's out variant; the outputs are the last arguments
  bool directly = false;        // run its kernel that writes into the outputs
  c10::SmallVector<at::Tensor, 2> outputs;  // where results go; undefined ones are not wanted
  bool random = false;
  uint64_t seed = 0;
  CapturedDraw draw;      // where the seed is that of the replay
  bool captured = false;  // runs in each launch of a graph
  // Of an operator with an index, which hands in what it accesses of its first argument: what else it accesses.
  std::unique_ptr<Ranges> beside;
  // The caller waits: results and exceptions stay here.
  bool waited_for = false;
  std::exception_ptr failure;
  // A caller whose wait ends with an error goes on while the stream still has the task.
  std::atomic<int> owners{1};
};

struct DropTask {
  void operator()(Task* task) const {
    if (task->owners.fetch_sub(1) == 1) delete task;
  }
};
using TaskPointer = std::unique_ptr<Task, DropTask>;
inline TaskPointer new_task() { return TaskPointer(new Task()); }

// Gives the task to the stream, which owns it from now on.
void enqueue(halstream_id stream, TaskPointer task, const Ranges& ranges, uint32_t site);

// Whether the program may rely on a wait. Of one that torch does not document the sanitizer takes no notice.
enum class Wait { documented, undocumented };

// Runs the task in stream order and waits; raises what the kernel raised. Afterwards `task.stack` has the results.
void run_and_wait(
    halstream_id stream, Task& task, const Ranges& ranges, uint32_t site, Wait wait = Wait::documented);

}  // namespace halstream_torch
