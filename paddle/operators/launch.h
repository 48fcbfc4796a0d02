// From a call of an operator to an operation on Paddle's current stream, which runs the wheel's kernel for CPUs.
#pragma once

#include <halstream.h>

#include <paddle/phi/backends/cpu/cpu_context.h>
#include <paddle/phi/backends/custom/custom_context.h>
#include <paddle/phi/core/dense_tensor.h>
#include <paddle/phi/core/kernel_factory.h>
#include <paddle/phi/core/kernel_utils.h>

#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace halstream_paddle {

// One call: what it reads and writes, and the kernel with tensors of its own on the same memory.
class Task {
 public:
  explicit Task(const phi::CustomContext& context) : context_(context) {}
  virtual ~Task() = default;
  virtual void run(const phi::DeviceContext& cpu) = 0;

  // Returns a CPU tensor on the memory of an input, and notes what is read.
  phi::DenseTensor input(const phi::DenseTensor& tensor);
  // Allocates an output and returns a CPU tensor on its memory, and notes what is written.
  phi::DenseTensor output(phi::DenseTensor* tensor);
  // Puts a result where it belongs that the kernel left in memory of its own.
  void check(const phi::DenseTensor& output) const;
  // Runs the task on the current stream. `name` must live as long as the process.
  static void enqueue(std::unique_ptr<Task> task, const char* name);

 private:
  phi::DenseTensor alias(const phi::DenseTensor& tensor, uint32_t access);

  const phi::CustomContext& context_;
  std::vector<halstream_range> ranges_;
  // The memory of the tensors so far: kernels look whether an output has that of an input.
  std::vector<std::pair<const phi::Allocation*, std::shared_ptr<phi::Allocation>>> memories_;
  friend int run_task(void* argument, char* text, size_t room);
  std::vector<std::pair<char*, size_t>> outputs_;  // where each output begins, and its bytes
  mutable size_t checked_ = 0;
};

// What a task keeps of one argument until it runs.
template <class Argument>
struct Held {
  static_assert(!std::is_pointer_v<std::decay_t<Argument>>, "an operator with such tensors cannot be listed");
  std::decay_t<Argument> value;
  Held(Task&, Argument argument) : value(argument) {}
  Argument get() { return value; }
  void check(const Task&) {}
};

template <>
struct Held<const phi::DenseTensor&> {
  phi::DenseTensor value;
  Held(Task& task, const phi::DenseTensor& tensor) : value(task.input(tensor)) {}
  const phi::DenseTensor& get() { return value; }
  void check(const Task&) {}
};

template <>
struct Held<const paddle::optional<phi::DenseTensor>&> {
  paddle::optional<phi::DenseTensor> value;
  Held(Task& task, const paddle::optional<phi::DenseTensor>& tensor) {
    if (tensor) value = task.input(*tensor);
  }
  const paddle::optional<phi::DenseTensor>& get() { return value; }
  void check(const Task&) {}
};

template <>
struct Held<const std::vector<const phi::DenseTensor*>&> {
  std::deque<phi::DenseTensor> values;
  std::vector<const phi::DenseTensor*> pointers;
  Held(Task& task, const std::vector<const phi::DenseTensor*>& tensors) {
    for (auto* one : tensors) pointers.push_back(one ? &values.emplace_back(task.input(*one)) : nullptr);
  }
  const std::vector<const phi::DenseTensor*>& get() { return pointers; }
  void check(const Task&) {}
};

template <>
struct Held<const paddle::optional<std::vector<const phi::DenseTensor*>>&> {
  std::deque<phi::DenseTensor> values;
  paddle::optional<std::vector<const phi::DenseTensor*>> pointers;
  Held(Task& task, const paddle::optional<std::vector<const phi::DenseTensor*>>& tensors) {
    if (!tensors) return;
    std::vector<const phi::DenseTensor*> all;
    for (auto* one : *tensors) all.push_back(one ? &values.emplace_back(task.input(*one)) : nullptr);
    pointers = std::move(all);
  }
  const paddle::optional<std::vector<const phi::DenseTensor*>>& get() { return pointers; }
  void check(const Task&) {}
};

template <>
struct Held<const std::vector<const phi::TensorBase*>&> {
  std::deque<phi::DenseTensor> values;
  std::vector<const phi::TensorBase*> pointers;
  Held(Task& task, const std::vector<const phi::TensorBase*>& tensors) {
    for (auto* one : tensors) pointers.push_back(&values.emplace_back(task.input(dense(one))));
  }
  static const phi::DenseTensor& dense(const phi::TensorBase* tensor);
  const std::vector<const phi::TensorBase*>& get() { return pointers; }
  void check(const Task&) {}
};

template <>
struct Held<phi::DenseTensor*> {
  bool is_there;
  phi::DenseTensor value;
  Held(Task& task, phi::DenseTensor* tensor) : is_there(tensor != nullptr) {
    if (is_there) value = task.output(tensor);
  }
  phi::DenseTensor* get() { return is_there ? &value : nullptr; }
  void check(const Task& task) {
    if (is_there) task.check(value);
  }
};

template <>
struct Held<std::vector<phi::DenseTensor*>> {
  std::deque<phi::DenseTensor> values;
  std::vector<phi::DenseTensor*> pointers;
  Held(Task& task, const std::vector<phi::DenseTensor*>& tensors) {
    for (auto* one : tensors) pointers.push_back(one ? &values.emplace_back(task.output(one)) : nullptr);
  }
  std::vector<phi::DenseTensor*> get() { return pointers; }
  void check(const Task& task) {
    for (auto& one : values) task.check(one);
  }
};

template <class... Arguments>
class Call final : public Task {
 public:
  using Kernel = void (*)(const phi::DeviceContext&, Arguments...);
  // Braces: the arguments are taken from left to right, so outputs come after inputs.
  Call(const phi::CustomContext& context, Kernel kernel, Arguments... arguments)
      : Task(context), kernel_(kernel), held_{Held<Arguments>(*this, arguments)...} {}
  void run(const phi::DeviceContext& cpu) override {
    std::apply([&](auto&... held) {
      kernel_(cpu, held.get()...);
      (held.check(*this), ...);
    }, held_);
  }

 private:
  Kernel kernel_;
  std::tuple<Held<Arguments>...> held_;
};

// The kernels for CPUs of one operator, by type.
struct Operator {
  const char* name;   // as Paddle's registry has it
  std::string shown;  // in reports
  int key;            // of which input the type chooses the kernel; -1: of the first output
  phi::KernelFn function;
  void* variadic;
  void* kernels[64] = {};

  void* kernel(phi::DataType type) const;
};

// Which type chooses the kernel, from the arguments.
struct Chooser {
  int wanted, seen = 0;
  bool found = false;
  phi::DataType type{phi::DataType::UNDEFINED};

  void take(const phi::DenseTensor& tensor) {
    if (!found && seen++ == wanted) found = true, type = tensor.dtype();
  }
  void look(const phi::DenseTensor& tensor) { take(tensor); }
  void look(const paddle::optional<phi::DenseTensor>& tensor) {
    if (tensor) take(*tensor);
    else ++seen;
  }
  void look(const std::vector<const phi::DenseTensor*>& tensors) {
    if (!tensors.empty()) take(*tensors.front());
  }
  void look(const std::vector<const phi::TensorBase*>& tensors) {
    if (!tensors.empty()) take(Held<const std::vector<const phi::TensorBase*>&>::dense(tensors.front()));
  }
  void look(phi::DenseTensor* tensor) {
    if (wanted < 0 && !found && tensor != nullptr) found = true, type = tensor->dtype();
  }
  template <class Other>
  void look(const Other&) {}
};

// These two set the shape of their output themselves, which others leave to a function that Paddle calls before.
void prepare_contiguous(const phi::DenseTensor& input, phi::DenseTensor* output);
void prepare_strided_copy(const phi::DenseTensor& input, const std::vector<int64_t>& dims,
                          const std::vector<int64_t>& strides, int64_t offset, phi::DenseTensor* output);

// What Paddle calls for one operator. `Tag::entry()` is its Operator.
template <class Tag, class Function>
struct Launch;

template <class Tag, class Context, class... Arguments>
struct Launch<Tag, void (*)(const Context&, Arguments...)> {
  static void run(const phi::CustomContext& context, Arguments... arguments) {
    auto& entry = Tag::entry();
    if constexpr (Tag::name == "contiguous") prepare_contiguous(arguments...);
    if constexpr (Tag::name == "strided_copy") prepare_strided_copy(arguments...);
    Chooser chooser{entry.key};
    (chooser.look(arguments), ...);
    using One = Call<Arguments...>;
    auto kernel = reinterpret_cast<typename One::Kernel>(entry.kernel(chooser.type));
    Task::enqueue(std::make_unique<One>(context, kernel, arguments...), entry.shown.c_str());
  }
};

// All operators that were compiled.
std::vector<Operator*>& operators();

struct Added {
  explicit Added(Operator& one) { operators().push_back(&one); }
};

}  // namespace halstream_paddle

// One operator: its name, the number of the input that chooses the type, and its function in Paddle's headers.
#define HALSTREAM_OPERATOR(op, key, ...)                                                 \
  struct Tag_##op {                                                                      \
    static constexpr std::string_view name{#op};                                         \
    static halstream_paddle::Operator& entry();                                          \
    using Shape = halstream_paddle::Launch<Tag_##op, decltype(&phi::__VA_ARGS__)>;       \
    using Impl = phi::KernelImpl<decltype(&Shape::run), &Shape::run>;                    \
  };                                                                                     \
  halstream_paddle::Operator& Tag_##op::entry() {                                        \
    static halstream_paddle::Operator one{#op, "paddle::" #op, key, &Tag_##op::Impl::Compute, \
                                          reinterpret_cast<void*>(&Tag_##op::Impl::VariadicCompute)}; \
    return one;                                                                          \
  }                                                                                      \
  static halstream_paddle::Added added_##op(Tag_##op::entry());
