#include "unsupported.h"

namespace halstream_torch {

namespace {

struct Rule {
  const char* prefix;
  const char* reason;
  const char* instead;
};

constexpr Rule rules[] = {
    {"aten::_cudnn_", "it calls cuDNN", "leave torch.backends.cudnn.enabled as it is: torch takes its own kernels"},
    {"aten::cudnn_", "it calls cuDNN", "call the operator without cudnn_ in its name, or the torch.nn module"},
    {"aten::miopen_", "it calls MIOpen", "call the operator without miopen_ in its name, or the torch.nn module"},
    {"aten::_scaled_dot_product_", "it is a fused attention kernel for GPUs",
     "call torch.nn.functional.scaled_dot_product_attention, which chooses a kernel that runs here"},
    {"aten::_flash_attention_", "it is a fused attention kernel for GPUs",
     "call torch.nn.functional.scaled_dot_product_attention"},
    {"aten::_efficient_attention_", "it is a fused attention kernel for GPUs",
     "call torch.nn.functional.scaled_dot_product_attention"},
    {"aten::_triton_", "it is a Triton kernel", "call torch.nn.functional.scaled_dot_product_attention"},
    {"aten::_sparse_semi_structured", "it calls cuSPARSELt", "use a dense tensor"},
    {"aten::_to_sparse_semi_structured", "it calls cuSPARSELt", "use a dense tensor"},
    {"aten::_cslt_", "it calls cuSPARSELt", "use a dense tensor"},
    {"symm_mem::", "it reads and writes memory of other processes, and devices of halstream belong to one each",
     "use the collectives of torch.distributed"},
    {"inductor_prims::", "it belongs to kernels that share random numbers with a CUDA graph",
     "leave torch._inductor.config.fallback_random as it is, or set it to True"},
};

}  // namespace

Refusal refusal_of(const std::string& name) {
  for (const auto& rule : rules) {
    if (name.rfind(rule.prefix, 0) == 0) return {name, rule.reason, rule.instead};
  }
  return {
      name, "there is a kernel for CUDA and none for the CPU",
      "supply one with halstream.torch.register_kernel, or run this part on CPU tensors"};
}

std::set<Refusal>& refusals() {
  static auto* all = new std::set<Refusal>();
  return *all;
}

}  // namespace halstream_torch
