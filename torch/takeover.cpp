#include "takeover.h"

#include "attention.h"
#include "direct.h"
#include "kernel.h"
#include "layouts.h"
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
  if (about_other_layouts(name) && !Operator(op).makes_other_layout) {
    // Those that the CPU has, too, torch has written once for every device.
    return cuda && !cpu ? Treatment::refuse : Treatment::leave;
  }
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
        refusal_.instead, kExplanation);
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

void refuse(torch::Library& library, const std::string& name, const std::string& full) {
  auto refusal = refusal_of(name);
  library.impl(full.c_str(), torch::CppFunction::makeFromBoxedFunctor(std::make_unique<RefusingKernel>(refusal)));
  refusals().insert(std::move(refusal));
}

// Tensors of other layouts have keys of their own. Most of torch's kernels there work on their parts, for every device;
// in place of the others the CPU's kernels run.
void serve_other_layouts() {
  auto& dispatcher = c10::Dispatcher::singleton();
  for (auto key : {DispatchKey::SparseCUDA, DispatchKey::SparseCsrCUDA, DispatchKey::NestedTensorCUDA,
                   DispatchKey::QuantizedCUDA}) {
    auto* library = new torch::Library(torch::Library::IMPL, "aten", std::make_optional(key), __FILE__, __LINE__);
    for (const auto& name : dispatcher.getAllOpNames()) {
      auto full = name.name + (name.overload_name.empty() ? "" : "." + name.overload_name);
      if (!has_kernel_for_gpus(key, full)) continue;
      auto op = dispatcher.findSchema(name);
      if (!op || !op->hasKernelForDispatchKey(key)) continue;
      auto facts = std::make_unique<Operator>(*op);
      if (key == DispatchKey::SparseCsrCUDA) facts->substitute = substitute_of_compressed(*op);
      auto kernel = op->hasKernelForDispatchKey(cpu_key(key))
          ? torch::CppFunction::makeFromBoxedFunctor(std::make_unique<Kernel>(std::move(facts)))
          : torch::CppFunction::makeFromBoxedFunctor(std::make_unique<RefusingKernel>(refusal_of(name.name)));
      library->impl(full.substr(6).c_str(), std::move(kernel));
    }
  }
}

std::vector<std::string>& served_names() {
  static auto* all = new std::vector<std::string>();
  return *all;
}

}  // namespace

const std::vector<std::string>& served_operators() { return served_names(); }

namespace {

// An operator of any library, by "mylib::op" or "mylib::op.overload".
struct Named {
  explicit Named(const std::string& name) : space(name.substr(0, name.find("::"))) {
    auto rest = name.substr(space.size() + 2);
    auto dot = rest.find('.');
    full = rest;
    auto overload = dot == std::string::npos ? "" : rest.substr(dot + 1);
    op = c10::Dispatcher::singleton().findSchema({space + "::" + rest.substr(0, dot), overload});
    TORCH_CHECK_VALUE(op.has_value(), "no operator has the name ", name);
  }

  // Puts a kernel where those for tensors of this device are.
  template <class MakeKernel>
  void put(MakeKernel make_kernel) const {
    NoWarnings quiet;
    for (auto key : {DispatchKey::CUDA, DispatchKey::QuantizedCUDA}) {
      if (key == DispatchKey::QuantizedCUDA && !op->hasKernelForDispatchKey(key)) continue;
      auto* library =
          new torch::Library(torch::Library::IMPL, space, std::make_optional(key), __FILE__, __LINE__);
      library->impl(full.c_str(), torch::CppFunction::makeFromBoxedFunctor(make_kernel()));
    }
  }

  std::string space, full;
  std::optional<c10::OperatorHandle> op;
};

}  // namespace

void serve_operator(const std::string& name) {
  Named named(name);
  named.put([&] { return std::make_unique<Kernel>(std::make_unique<Operator>(*named.op)); });
}

void refuse_operator(const std::string& name) {
  Named named(name);
  auto refusal = refusal_of(name);
  named.put([&] { return std::make_unique<RefusingKernel>(refusal); });
  refusals().insert(std::move(refusal));
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
        // Its numbers, which are lengths, are known without values.
        if (attention_of(name.name, name.overload_name) != nullptr) facts->needs_values = false;
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
  serve_other_layouts();
  install_special_kernels();
  return served_names().size();
}

}  // namespace halstream_torch
