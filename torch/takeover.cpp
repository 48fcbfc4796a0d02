#include "takeover.h"

#include "direct.h"
#include "kernel.h"
#include "no_warnings.h"
#include "substitutes.h"
#include "unsupported.h"

#include <c10/util/Exception.h>
#include <torch/library.h>

#include <unordered_set>

namespace halstream_torch {

namespace {

using c10::DispatchKey;

// Names whose own kernels already do the right thing for any device: they make views, change metadata, or call
// operators that this module serves.
const std::unordered_set<std::string>& left_as_they_are() {
  static const auto* names = new std::unordered_set<std::string>{
      "aten::_coalesced", "aten::_coalesced_", "aten::_conj", "aten::_fw_primal", "aten::_lazy_clone",
      "aten::_has_same_storage_numel", "aten::_make_dual", "aten::_pack_padded_sequence",
      "aten::_pack_padded_sequence_backward", "aten::_neg_view", "aten::_pin_memory", "aten::_print",
      "aten::_reshape_alias", "aten::_reshape_copy", "aten::_resize_output", "aten::_resize_output_",
      "aten::_to_copy", "aten::_unsafe_view", "aten::_version", "aten::alias", "aten::as_strided",
      "aten::as_strided_", "aten::data", "aten::dense_dim", "aten::detach", "aten::detach_",
      "aten::_efficientzerotensor", "aten::empty_like", "aten::empty_permuted", "aten::full_like", "aten::is_coalesced",
      "aten::is_pinned", "aten::is_same_size", "aten::is_set_to", "aten::lift", "aten::lift_fresh", "aten::new_empty",
      "aten::new_empty_strided", "aten::new_full", "aten::new_ones", "aten::new_zeros", "aten::ones_like",
      "aten::pin_memory", "aten::rand_like", "aten::randint_like", "aten::randn_like", "aten::resize_as_",
      "aten::sparse_dim", "aten::squeeze_", "aten::swapaxes_", "aten::swapdims_", "aten::t_", "aten::transpose_",
      "aten::unfold", "aten::unsqueeze_", "aten::view", "aten::view_as_complex", "aten::view_as_real",
      "aten::zeros_like", "aten::to_padded_tensor", "aten::copy", "aten::sym_size", "aten::sym_stride",
      "aten::sym_numel", "aten::sym_storage_offset", "aten::_assert_tensor_metadata", "aten::_backward",
      "aten::requires_grad_", "aten::retain_grad", "aten::set_data", "aten::_debug_has_internal_overlap"};
  return *names;
}

// Served by special.cpp.
const std::unordered_set<std::string>& served_by_hand() {
  static const auto* names = new std::unordered_set<std::string>{
      "aten::copy_",         "aten::empty",   "aten::empty_strided",     "aten::resize_", "aten::set_",
      "aten::record_stream", "aten::_fused_sdp_choice"};
  return *names;
}

bool about_other_layouts(const std::string& name) {
  for (const char* prefix : {"aten::_sparse", "aten::sparse", "aten::_nested", "aten::_to_sparse", "aten::to_sparse",
                             "aten::crow_indices", "aten::ccol_indices", "aten::col_indices", "aten::row_indices",
                             "aten::values", "aten::indices", "aten::_values", "aten::_indices", "aten::_mkldnn",
                             "aten::mkldnn_", "aten::to_mkldnn", "aten::_test", "aten::_dim", "aten::quantize_per_", "aten::_make_per_", "aten::dequantize"}) {
    if (name.rfind(prefix, 0) == 0) return true;
  }
  return false;
}

// Those of them that torch has written once for every device: left alone they would make tensors of other layouts on
// this device. Most are dispatched by the layout of their result, so that the dense key alone does not see the call.
const std::unordered_set<std::string>& makers_of_other_layouts() {
  static const auto* names = new std::unordered_set<std::string>{
      "aten::sparse_compressed_tensor", "aten::_sparse_compressed_tensor_unsafe",
      "aten::_sparse_compressed_tensor_with_dims", "aten::_sparse_csr_tensor_unsafe", "aten::_sparse_csc_tensor_unsafe",
      "aten::_sparse_bsr_tensor_unsafe", "aten::_sparse_bsc_tensor_unsafe", "aten::_sparse_coo_tensor_unsafe",
      "aten::sparse_coo_tensor", "aten::_nested_tensor_from_tensor_list", "aten::_nested_view_from_buffer",
      "aten::_nested_view_from_buffer_copy"};
  return *names;
}

bool takes(const c10::FunctionSchema& schema, bool tensors) {
  for (const auto& argument : schema.arguments()) {
    auto text = argument.real_type()->str();
    if (tensors ? text.find("Tensor") != std::string::npos : text.find("Device") != std::string::npos) return true;
  }
  return false;
}

enum class Treatment { leave, serve, refuse, cpu_kernel, answer_no };

Treatment treatment(const c10::OperatorHandle& op) {
  const auto& schema = op.schema();
  const auto& name = schema.name();
  if (makers_of_other_layouts().count(name) != 0) return Treatment::refuse;
  bool cuda = op.hasKernelForDispatchKey(DispatchKey::CUDA);
  bool cpu = op.hasKernelForDispatchKey(DispatchKey::CPU);
  bool composite = op.hasKernelForDispatchKey(DispatchKey::CompositeExplicitAutograd) ||
      op.hasKernelForDispatchKey(DispatchKey::CompositeExplicitAutogradNonFunctional);
  if (!cuda && !cpu && !composite) return Treatment::leave;
  if (served_by_hand().count(name) != 0 && (name != "aten::empty" || schema.overload_name() == "memory_format")) {
    return Treatment::leave;
  }
  if (left_as_they_are().count(name) != 0 || makes_view(schema)) {
    // A torch without CUDA has these kernels for the CPU alone; they touch no data.
    return cuda || composite ? Treatment::leave : Treatment::cpu_kernel;
  }
  if (substitute_of(op) != nullptr) return Treatment::serve;
  // A fast path that would make nested tensors.
  if (name == "aten::_nested_tensor_from_mask_left_aligned") return Treatment::answer_no;
  if (name.rfind("aten::_use_cudnn_", 0) == 0 || name.rfind("aten::_use_miopen_", 0) == 0) return Treatment::answer_no;
  if (about_other_layouts(name)) return cuda ? Treatment::refuse : Treatment::leave;
  bool tensors = takes(schema, true);
  if (!tensors && !(cuda && takes(schema, false))) return Treatment::leave;
  if (!cuda && !cpu) {
    // Composites that neither make nor change tensors, and random ones without a generator, call what is served.
    Operator facts(op);
    if (!facts.writes && (!facts.makes || facts.needs_values)) {
      if (facts.returns.empty() || facts.returns[0].kind == ReturnFacts::Kind::other) return Treatment::leave;
    }
    if (facts.random && facts.generator < 0) return Treatment::leave;
  }
  return cpu || composite ? Treatment::serve : Treatment::refuse;
}

class RefusingKernel final : public c10::OperatorKernel {
 public:
  explicit RefusingKernel(Refusal refusal) : refusal_(std::move(refusal)) {}
  void operator()(const c10::OperatorHandle&, c10::DispatchKeySet, Stack*) {
    TORCH_CHECK_NOT_IMPLEMENTED(
        false, refusal_.name, " is not supported on halstream's CUDA device: ", refusal_.reason, "; ",
        refusal_.instead);
  }

 private:
  Refusal refusal_;
};

// "Would a library of CUDA do it?"
class NoKernel final : public c10::OperatorKernel {
 public:
  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet, Stack* stack) {
    torch::jit::drop(*stack, op.schema().arguments().size());
    stack->emplace_back(false);
  }
};

class CpuKernel final : public c10::OperatorKernel {
 public:
  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet, Stack* stack) {
    op.callBoxedForDispatchKey(DispatchKey::CPU, *stack);
  }
};

// Refuses a call that names this device for its result; others go on to the kernels of their tensors.
class RefusingDevice final : public c10::OperatorKernel {
 public:
  explicit RefusingDevice(Refusal refusal) : refused_(std::move(refusal)) {}
  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet keys, Stack* stack) {
    for (const auto& argument : torch::jit::last(*stack, op.schema().arguments().size())) {
      if (argument.isDevice() && argument.toDevice().is_cuda()) return refused_(op, keys, stack);
    }
    op.redispatchBoxed(keys & c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER, DispatchKey::BackendSelect), stack);
  }

 private:
  RefusingKernel refused_;
};

void refuse(torch::Library& library, const std::string& name, const std::string& full) {
  auto refusal = refusal_of(name);
  library.impl(full.c_str(), torch::CppFunction::makeFromBoxedFunctor(std::make_unique<RefusingKernel>(refusal)));
  refusals().insert(std::move(refusal));
}

// Tensors of other layouts have keys of their own, with kernels that would call CUDA. What makes such a tensor on this
// device, a copy from the CPU (_to_copy) included, is refused there, too: no later operator would have a kernel.
void refuse_other_layouts() {
  auto& dispatcher = c10::Dispatcher::singleton();
  for (auto key : {DispatchKey::SparseCUDA, DispatchKey::SparseCsrCUDA, DispatchKey::NestedTensorCUDA,
                   DispatchKey::QuantizedCUDA}) {
    auto* library = new torch::Library(torch::Library::IMPL, "aten", std::make_optional(key), __FILE__, __LINE__);
    for (const auto& name : dispatcher.getAllOpNames()) {
      auto op = dispatcher.findSchema(name);
      if (!op || name.name.rfind("aten::", 0) != 0) continue;
      bool makes = makers_of_other_layouts().count(name.name) != 0 || name.name == "aten::_to_copy";
      if (!makes && !op->hasKernelForDispatchKey(key)) continue;
      auto full = name.name.substr(6) + (name.overload_name.empty() ? "" : "." + name.overload_name);
      library->impl(
          full.c_str(), torch::CppFunction::makeFromBoxedFunctor(std::make_unique<RefusingKernel>(Refusal{
                            name.name, "sparse, nested and quantized tensors have no kernels here",
                            "use a dense tensor, or the CPU"})));
    }
  }
}

// torch chooses this operator's kernel by the tensors of the list alone: of CPU tensors it is the CPU's, which makes the
// nested tensor on the device that the call names.
void refuse_nested_of_cpu_tensors() {
  auto* library =
      new torch::Library(torch::Library::IMPL, "aten", std::make_optional(DispatchKey::BackendSelect), __FILE__, __LINE__);
  const char* name = "_nested_tensor_from_tensor_list";
  library->impl(
      name, torch::CppFunction::makeFromBoxedFunctor(
                std::make_unique<RefusingDevice>(refusal_of(std::string("aten::") + name))));
}

std::vector<std::string>& served_names() {
  static auto* all = new std::vector<std::string>();
  return *all;
}

}  // namespace

const std::vector<std::string>& served_operators() { return served_names(); }

void serve_operator(const std::string& name) {
  auto dot = name.find('.', name.find("::") == std::string::npos ? 0 : name.find("::"));
  auto base = name.substr(0, dot);
  auto overload = dot == std::string::npos ? "" : name.substr(dot + 1);
  auto op = c10::Dispatcher::singleton().findSchema({base, overload});
  TORCH_CHECK_VALUE(op.has_value(), "no operator has the name ", name);
  NoWarnings quiet;
  auto* library = new torch::Library(
      torch::Library::IMPL, base.substr(0, base.find("::")), std::make_optional(DispatchKey::CUDA), __FILE__, __LINE__);
  auto full = base.substr(base.find("::") + 2) + (overload.empty() ? "" : "." + overload);
  library->impl(
      full.c_str(),
      torch::CppFunction::makeFromBoxedFunctor(std::make_unique<Kernel>(std::make_unique<Operator>(*op))));
}

size_t install_operators() {
  NoWarnings quiet;
  // Never destroyed: destroying it would take the kernels away while tensors still exist.
  static auto* library =
      new torch::Library(torch::Library::IMPL, "aten", std::make_optional(DispatchKey::CUDA), __FILE__, __LINE__);
  auto& dispatcher = c10::Dispatcher::singleton();
  for (const auto& name : dispatcher.getAllOpNames()) {
    if (name.name.rfind("aten::", 0) != 0) continue;
    auto op = dispatcher.findSchema(name);
    if (!op) continue;
    auto full = name.name.substr(6) + (name.overload_name.empty() ? "" : "." + name.overload_name);
    switch (treatment(*op)) {
      case Treatment::leave:
        break;
      case Treatment::serve: {
        auto facts = std::make_unique<Operator>(*op);
        facts->substitute = substitute_of(*op);
        facts->direct = direct_of(*op);
        library->impl(
            full.c_str(), torch::CppFunction::makeFromBoxedFunctor(std::make_unique<Kernel>(std::move(facts))));
        served_names().push_back(full);
        break;
      }
      case Treatment::refuse:
        refuse(*library, name.name, full);
        break;
      case Treatment::answer_no:
        library->impl(full.c_str(), torch::CppFunction::makeFromBoxedFunctor(std::make_unique<NoKernel>()));
        break;
      case Treatment::cpu_kernel:
        library->impl(full.c_str(), torch::CppFunction::makeFromBoxedFunctor(std::make_unique<CpuKernel>()));
        break;
    }
  }
  refuse_other_layouts();
  refuse_nested_of_cpu_tensors();
  install_special_kernels();
  return served_names().size();
}

}  // namespace halstream_torch
