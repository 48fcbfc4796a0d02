#include "kernel.h"

#include "counters.h"
#include "inference.h"
#include "generator.h"
#include "layouts.h"
#include "private_pools.h"
#include "sites.h"
#include "task.h"
#include "tensors.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/op_registration/adaption.h>
#include <c10/core/DefaultDtype.h>

namespace halstream_torch {

namespace {

using Arguments = c10::ArrayRef<c10::IValue>;

// One call of an operator, from its arguments to the task.
class Call {
 public:
  Call(const Operator& op, Arguments arguments) : op_(op), arguments_(arguments) {}

  void run(Stack& results);

 private:
  template <class F>
  void each_tensor(size_t index, F f) const;
  void look_at_arguments();
  void look_at_tensor(size_t index, const at::Tensor& tensor);
  // The shape of an index's result depends on values only where an index is a mask.
  bool needs_values() const { return op_.needs_values && (masked_ || op_.name != "aten::index"); }
  // Of arguments of other layouts: whether the results have the strided one.
  bool has_plain_results() const;
  void check_devices() const;
  void find_metadata();
  void resize_outs() const;
  void fill_stack();
  void hand_in_later();
  c10::IValue for_cpu(size_t index);
  at::Tensor for_cpu(size_t index, const at::Tensor& tensor);
  void push_results(Stack& results);
  at::Tensor make_output(const Metadata::Output& output);
  void wait_for_results(Stack& results);
  Wait wait_of_cuda() const;

  const Operator& op_;
  Arguments arguments_;
  DeviceIndex device_ = -1;
  bool on_host_ = false;  // some tensor lies on the CPU
  bool masked_ = false;   // some tensor of a list is a mask
  bool plain_ = true;     // no tensor is sparse, nested or quantized
  bool nested_ = false;
  bool surely_runs_ = true;
  MetadataKey key_;
  bool has_key_ = true;
  std::shared_ptr<const Metadata> metadata_;
  TaskPointer task_ = new_task();
  Ranges ranges_;
  size_t of_first_argument_ = 0;  // how many of the ranges
  uint64_t capture_ = 0;    // that the current stream takes part in
  bool listening_ = false;  // somebody needs the ranges and the place of the call
};

template <class F>
void Call::each_tensor(size_t index, F f) const {
  const auto& value = arguments_[index];
  if (value.isTensor()) {
    f(value.toTensor());
  } else if (value.isList()) {
    for (const auto& item : value.toListRef()) {
      if (item.isTensor()) f(item.toTensor());
    }
  }
}

// Layouts and types of which the CPU's kernels refuse nothing. What they refuse has to be raised at the call.
static bool surely_runs(const at::Tensor& tensor) {
  return is_plain(tensor) ||
      (tensor.layout() == c10::kSparse || tensor.layout() == c10::kSparseCsr) &&
      (tensor.scalar_type() == c10::kFloat || tensor.scalar_type() == c10::kDouble);
}

void Call::look_at_tensor(size_t, const at::Tensor& tensor) {
  if (!tensor.defined()) return;
  plain_ = plain_ && is_plain(tensor);
  nested_ = nested_ || tensor.is_nested();
  surely_runs_ = surely_runs_ && surely_runs(tensor);
  if (tensor.device().is_cuda()) {
    if (device_ < 0) device_ = tensor.device().index();
    if (tensor.device().index() != device_) on_host_ = true;
  } else {
    on_host_ = true;
  }
}

void Call::look_at_arguments() {
  // Numbers decide the shapes of arange and its like, but never those of pointwise operators.
  key_.add(static_cast<uint64_t>(c10::get_default_dtype_as_scalartype()));
  for (size_t i = 0; i < arguments_.size(); i++) {
    const auto& facts = op_.arguments[i];
    const auto& value = arguments_[i];
    if (facts.kind == ArgumentFacts::Kind::tensor || facts.kind == ArgumentFacts::Kind::tensors) {
      bool list = facts.kind == ArgumentFacts::Kind::tensors;
      each_tensor(i, [&](const at::Tensor& tensor) {
        look_at_tensor(i, tensor);
        if (!list || !tensor.defined()) return;
        masked_ = masked_ || tensor.scalar_type() == at::kBool || tensor.scalar_type() == at::kByte;
      });
    } else if (facts.kind == ArgumentFacts::Kind::device && value.isDevice() && value.toDevice().is_cuda()) {
      if (device_ < 0) device_ = resolve_device(value.toDevice().index());
    }
    bool with_numbers = facts.kind != ArgumentFacts::Kind::number || !op_.pointwise || op_.random;
    has_key_ = has_key_ && plain_ && key_.add_value(value, with_numbers);
  }
  if (device_ < 0) device_ = current_device();
}

void Call::check_devices() const {
  if (!on_host_) return;
  for (size_t i = 0; i < arguments_.size(); i++) {
    const auto& facts = op_.arguments[i];
    each_tensor(i, [&](const at::Tensor& tensor) {
      if (!tensor.defined() || (tensor.device().is_cuda() && tensor.device().index() == device_)) return;
      bool number = tensor.device().is_cpu() && tensor.dim() == 0 && !facts.writes;
      bool index = tensor.device().is_cpu() && op_.indexes && facts.kind == ArgumentFacts::Kind::tensors;
      bool lengths = tensor.device().is_cpu() && op_.lengths_on_host;
      if (number || index || lengths) return;
      const auto& argument = op_.handle.schema().arguments()[i].name();
      at::Device common(c10::DeviceType::CUDA, device_);
      if (op_.pointwise) {
        TORCH_CHECK(
            false, "Expected all tensors to be on the same device, but found at least two devices, ", common, " and ",
            tensor.device(), "!");
      }
      auto method = "wrapper_CUDA_" + op_.name.substr(op_.name.find("::") + 2);
      c10::impl::common_device_check_failure(common, tensor, method.c_str(), argument.c_str());
    });
  }
}

// A CUDA kernel looks at the value only; how many there are is known at the call.
static void check_one_value(const at::Tensor& tensor) {
  TORCH_CHECK(tensor.numel() != 0, "Boolean value of Tensor with no values is ambiguous");
  TORCH_CHECK(tensor.numel() < 2, "Boolean value of Tensor with more than one value is ambiguous");
}

bool Call::has_plain_results() const {
  for (size_t i = 0; i < arguments_.size(); i++) {
    if (op_.arguments[i].writes && arguments_[i].isTensor() && !is_plain(arguments_[i].toTensor())) return false;
  }
  if (!op_.makes) return !nested_;
  return !nested_ && op_.name == "aten::bmm" || op_.name == "aten::addmm" && is_plain(arguments_[0].toTensor());
}


void Call::find_metadata() {
  if (op_.takes_one_value) check_one_value(arguments_[0].toTensor());
  static const auto unknown = [] {
    auto none = std::make_shared<Metadata>();
    none->known = false;
    return none;
  }();
  if (needs_values() || op_.returns.empty() && !op_.writes || !plain_ && !has_plain_results() || op_.makes_other_layout) {
    metadata_ = unknown;
    return;
  }
  uint64_t hash = 0;
  if (has_key_) {
    hash = key_.hash();
    metadata_ = op_.metadata.find(key_, hash);
    if (metadata_) {
      counters().metadata_hits.fetch_add(1, std::memory_order_relaxed);
      return;
    }
  }
  counters().metadata_misses.fetch_add(1, std::memory_order_relaxed);
  metadata_ = infer(op_, arguments_);
  if (has_key_) op_.metadata.insert(key_, hash, metadata_);
}

void Call::resize_outs() const {
  if (!op_.has_out || !metadata_->known) return;
  // Results come in the order of the `out=` arguments.
  for (size_t r = 0, output = 0; r < op_.returns.size(); r++) {
    auto index = op_.returns[r].argument;
    if (index >= 0 && op_.arguments[index].out && arguments_[index].isTensor()) {
      const auto& tensor = arguments_[index].toTensor();
      const auto& wanted = metadata_->outputs[output];
      if (tensor.defined() && wanted.defined && tensor.sizes() != at::IntArrayRef(wanted.sizes)) {
        resize_tensor(tensor, wanted.sizes);
      }
    }
    auto length = metadata_->lengths[r];
    output += length < 0 ? 1 : static_cast<size_t>(length);
  }
}

at::Tensor Call::for_cpu(size_t index, const at::Tensor& tensor) {
  if (!tensor.defined()) return tensor;
  const auto& facts = op_.arguments[index];
  if (tensor.device().is_cuda()) {
    if (listening_) {
      add_ranges(ranges_, tensor, facts.out ? HALSTREAM_WRITE : facts.writes ? HALSTREAM_READ | HALSTREAM_WRITE : HALSTREAM_READ);
    }
    return cpu_alias(tensor);
  }
  // The program may change a CPU tensor before the operator runs: it takes part with its value at the call.
  return tensor.unsafeGetTensorImpl()->is_wrapped_number() ? tensor : tensor.detach().clone();
}

c10::IValue Call::for_cpu(size_t index) {
  const auto& value = arguments_[index];
  if (value.isTensor()) return for_cpu(index, value.toTensor());
  if (value.isTensorList()) {
    c10::List<at::Tensor> list;
    auto items = value.toListRef();
    list.reserve(items.size());
    for (const auto& item : items) list.push_back(for_cpu(index, item.toTensor()));
    return list;
  }
  if (value.isOptionalTensorList()) {
    c10::List<std::optional<at::Tensor>> list;
    for (const auto& item : value.toListRef()) {
      list.push_back(item.isNone() ? std::nullopt : std::make_optional(for_cpu(index, item.toTensor())));
    }
    return list;
  }
  if (value.isDevice() && value.toDevice().is_cuda()) return c10::Device(c10::DeviceType::CPU);
  return value;
}

void Call::fill_stack() {
  auto& stack = task_->stack;
  task_->op = &op_;
  stack.reserve(arguments_.size() + op_.returns.size());
  at::AutoDispatchBelowADInplaceOrView without_autograd;
  for (size_t i = 0; i < arguments_.size(); i++) {
    stack.push_back(for_cpu(i));
    if (i == 0) of_first_argument_ = ranges_.size();
  }
  if (!op_.random) return;
  bool given = op_.generator >= 0 && arguments_[op_.generator].isGenerator();
  auto generator = given ? arguments_[op_.generator].toGenerator() : default_generator(device_);
  task_->random = true;
  if (capture_ != 0) task_->draw = draw_in_capture(capture_, generator);
  if (!task_->draw.seeds) task_->seed = draw_seed(generator);
}

// What the index names is known when the operator runs.
void Call::hand_in_later() {
  if (!listening_ || op_.indexing == Indexing::none || of_first_argument_ == 0) return;
  task_->beside = std::make_unique<Ranges>(ranges_.begin() + of_first_argument_, ranges_.end());
}

at::Tensor Call::make_output(const Metadata::Output& output) {
  if (!output.defined) {
    task_->outputs.emplace_back();
    return {};
  }
  auto tensor = empty_like_output(output);
  if (listening_) add_ranges(ranges_, tensor, HALSTREAM_WRITE);
  task_->outputs.push_back(cpu_alias(tensor));
  return tensor;
}

// CUDA keeps statistics of 16-bit numbers in 32 bits, and the CPU's kernels write no such output.
static bool widened(const at::Tensor& result, const at::Tensor& statistic) {
  return c10::isReducedFloatingType(result.scalar_type()) && c10::isFloatingType(statistic.scalar_type()) &&
      statistic.scalar_type() != result.scalar_type();
}

void Call::push_results(Stack& results) {
  size_t output = 0, number = 0;
  for (size_t r = 0; r < op_.returns.size(); r++) {
    const auto& facts = op_.returns[r];
    auto length = metadata_->known ? metadata_->lengths[r] : -1;
    if (facts.argument >= 0) {
      results.push_back(arguments_[facts.argument]);
      auto count = length < 0 ? 1 : static_cast<size_t>(length);
      if (op_.makes) task_->outputs.resize(task_->outputs.size() + count);  // written in place: nothing to copy
      output += count;
    } else if (length == Metadata::number) {
      results.push_back(metadata_->numbers[number++]);
    } else if (length < 0) {
      results.push_back(make_output(metadata_->outputs[output++]));
    } else {
      c10::List<at::Tensor> list;
      for (int i = 0; i < length; i++) list.push_back(make_output(metadata_->outputs[output++]));
      results.push_back(std::move(list));
    }
  }
  if (op_.direct == nullptr && (!op_.out_variant || op_.substitute != nullptr)) return;
  for (const auto& alias : task_->outputs) {
    if (!alias.defined() || widened(task_->outputs[0], alias)) return;
  }
  if (op_.direct != nullptr) {
    task_->directly = true;
  } else {
    task_->into_outputs = true;
    for (auto& alias : task_->outputs) task_->stack.push_back(alias);
  }
}

static void already_run(Stack&, uint64_t) {}

// Copies what the host has into device memory, in stream order.
class Upload {
 public:
  Upload(halstream_id stream, bool listening) : stream_(stream), listening_(listening) {
    static const auto* copy_of_result = [] {
      auto handle = c10::Dispatcher::singleton().findSchemaOrThrow("aten::copy_", "");
      auto* op = new Operator(handle);
      op->substitute = &already_run;
      return op;
    }();
    task_->op = copy_of_result;
  }

  // A result, as it is on the device.
  c10::IValue add(const c10::IValue& value) {
    if (value.isTensor()) return add(value.toTensor());
    if (!value.isTensorList()) return value;
    c10::List<at::Tensor> list;
    for (const auto& item : value.toListRef()) list.push_back(add(item.toTensor()));
    return list;
  }
  // An argument that the operator has changed.
  void change(const at::Tensor& argument, const at::Tensor& alias) {
    take_parts(argument, alias, [&](const at::Tensor& part) { return put(part); });
  }
  void enqueue(uint32_t site) {
    if (!task_->outputs.empty()) halstream_torch::enqueue(stream_, std::move(task_), written_, site);
  }

 private:
  at::Tensor add(const at::Tensor& result) {
    if (!result.defined()) return result;
    if (is_plain(result)) return put(result);
    auto parts = parts_of(result);
    for (auto& part : parts) part = put(part);
    return assemble(result, parts);
  }
  at::Tensor put(const at::Tensor& plain) {
    auto tensor = empty_strided(plain.sizes(), plain.strides(), plain.scalar_type());
    if (listening_) add_ranges(written_, tensor, HALSTREAM_WRITE);
    task_->stack.push_back(plain);
    task_->outputs.push_back(cpu_alias(tensor));
    return tensor;
  }

  halstream_id stream_;
  bool listening_;
  TaskPointer task_ = new_task();
  Ranges written_;
};

// What a program may rely on: CUDA's kernels wait where values decide how many the results are.
Wait Call::wait_of_cuda() const {
  return op_.needs_values || plain_ && !op_.makes_other_layout ? Wait::documented : Wait::undocumented;
}

void Call::wait_for_results(Stack& results) {
  if (wait_of_cuda() == Wait::documented) host_waits(op_.name, device_);
  auto stream = current_stream(device_);
  auto site = listening_ ? current_site() : 0;
  hand_in_later();
  run_and_wait(stream, *task_, ranges_, site, wait_of_cuda());
  Upload upload(stream, listening_);
  for (size_t r = 0; r < op_.returns.size(); r++) {
    const auto& facts = op_.returns[r];
    const auto& result = task_->stack[r];
    if (facts.argument >= 0) {
      const auto& argument = arguments_[facts.argument];
      if (argument.isTensor() && !is_plain(argument.toTensor())) upload.change(argument.toTensor(), result.toTensor());
      results.push_back(argument);
      continue;
    }
    bool on_host = op_.lengths_on_host && r > 0;  // lengths again
    results.push_back(on_host ? result : upload.add(result));
  }
  upload.enqueue(site);
}

void Call::run(Stack& results) {
  look_at_arguments();
  check_devices();
  DeviceScope scope(device_);
  find_metadata();
  resize_outs();
  counters().operators.fetch_add(1, std::memory_order_relaxed);
  capture_ = capture_of(current_stream(device_));
  listening_ = capture_ != 0 || core->listening() != 0;
  fill_stack();
  bool must_wait = op_.makes && !metadata_->known || needs_values() || metadata_->raised ||
      !plain_ && (!surely_runs_ || !has_plain_results());
  if (must_wait) {
    wait_for_results(results);
    return;
  }
  push_results(results);
  hand_in_later();
  enqueue(current_stream(device_), std::move(task_), ranges_, current_site());
}

}  // namespace

void Kernel::operator()(const c10::OperatorHandle&, c10::DispatchKeySet, Stack* stack) {
  auto count = op_->arguments.size();
  Stack results;
  results.reserve(op_->returns.size());
  {
    Call call(*op_, Arguments(stack->data() + (stack->size() - count), count));
    call.run(results);
  }
  stack->resize(stack->size() - count);
  for (auto& value : results) stack->push_back(std::move(value));
}

}  // namespace halstream_torch
