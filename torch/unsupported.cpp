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
    {"aten::_nested_", "nested tensors are not supported", "use padded tensors"},
    {"aten::_sparse", "sparse tensors are not supported on this device", "use a dense tensor, or the CPU"},
    {"aten::_to_sparse", "sparse tensors are not supported on this device", "use a dense tensor, or the CPU"},
    {"aten::to_sparse", "sparse tensors are not supported on this device", "use a dense tensor, or the CPU"},
    {"aten::sparse", "sparse tensors are not supported on this device", "use a dense tensor, or the CPU"},
    {"aten::quantize_per_", "quantized tensors are not supported on this device", "use fake quantization, or the CPU"},
    {"aten::_make_per_", "quantized tensors are not supported on this device", "use fake quantization, or the CPU"},
    {"aten::dequantize", "quantized tensors are not supported on this device", "use fake quantization, or the CPU"},
};

}  // namespace

Refusal refusal_of(const std::string& name) {
  for (const auto& rule : rules) {
    if (name.rfind(rule.prefix, 0) == 0) return {name, rule.reason, rule.instead};
  }
  return {
      name, "torch has a kernel for CUDA and none for the CPU",
      "supply one with halstream.torch.register_kernel, or run this part on CPU tensors"};
}

std::set<Refusal>& refusals() {
  static auto* all = new std::set<Refusal>();
  return *all;
}

}  // namespace halstream_torch
