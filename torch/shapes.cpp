#include "shapes.h"

#include <ATen/core/Tensor.h>

// Not in angle brackets: what is, becomes part of the header that is compiled for all files.
#include "ATen/ops/_log_softmax_meta_dispatch.h"
#include "ATen/ops/_log_softmax_backward_data_meta_dispatch.h"
#include "ATen/ops/_softmax_meta_dispatch.h"
#include "ATen/ops/_softmax_backward_data_meta_dispatch.h"
#include "ATen/ops/add_meta_dispatch.h"
#include "ATen/ops/addcdiv_meta_dispatch.h"
#include "ATen/ops/addcmul_meta_dispatch.h"
#include "ATen/ops/addmm_meta_dispatch.h"
#include "ATen/ops/amax_meta_dispatch.h"
#include "ATen/ops/amin_meta_dispatch.h"
#include "ATen/ops/argmax_meta_dispatch.h"
#include "ATen/ops/argmin_meta_dispatch.h"
#include "ATen/ops/avg_pool2d_meta_dispatch.h"
#include "ATen/ops/avg_pool2d_backward_meta_dispatch.h"
#include "ATen/ops/baddbmm_meta_dispatch.h"
#include "ATen/ops/bitwise_and_meta_dispatch.h"
#include "ATen/ops/bitwise_not_meta_dispatch.h"
#include "ATen/ops/bitwise_or_meta_dispatch.h"
#include "ATen/ops/bitwise_xor_meta_dispatch.h"
#include "ATen/ops/bmm_meta_dispatch.h"
#include "ATen/ops/cat_meta_dispatch.h"
#include "ATen/ops/ceil_meta_dispatch.h"
#include "ATen/ops/clamp_meta_dispatch.h"
#include "ATen/ops/clamp_min_meta_dispatch.h"
#include "ATen/ops/cos_meta_dispatch.h"
#include "ATen/ops/cumsum_meta_dispatch.h"
#include "ATen/ops/div_meta_dispatch.h"
#include "ATen/ops/elu_meta_dispatch.h"
#include "ATen/ops/eq_meta_dispatch.h"
#include "ATen/ops/erf_meta_dispatch.h"
#include "ATen/ops/erfc_meta_dispatch.h"
#include "ATen/ops/exp_meta_dispatch.h"
#include "ATen/ops/exp2_meta_dispatch.h"
#include "ATen/ops/expm1_meta_dispatch.h"
#include "ATen/ops/floor_meta_dispatch.h"
#include "ATen/ops/gather_meta_dispatch.h"
#include "ATen/ops/ge_meta_dispatch.h"
#include "ATen/ops/gelu_meta_dispatch.h"
#include "ATen/ops/gelu_backward_meta_dispatch.h"
#include "ATen/ops/gt_meta_dispatch.h"
#include "ATen/ops/index_meta_dispatch.h"
#include "ATen/ops/index_add_meta_dispatch.h"
#include "ATen/ops/le_meta_dispatch.h"
#include "ATen/ops/leaky_relu_meta_dispatch.h"
#include "ATen/ops/lerp_meta_dispatch.h"
#include "ATen/ops/linalg_vector_norm_meta_dispatch.h"
#include "ATen/ops/log_meta_dispatch.h"
#include "ATen/ops/log10_meta_dispatch.h"
#include "ATen/ops/log1p_meta_dispatch.h"
#include "ATen/ops/log2_meta_dispatch.h"
#include "ATen/ops/lt_meta_dispatch.h"
#include "ATen/ops/max_meta_dispatch.h"
#include "ATen/ops/max_pool2d_with_indices_meta_dispatch.h"
#include "ATen/ops/max_pool2d_with_indices_backward_meta_dispatch.h"
#include "ATen/ops/maximum_meta_dispatch.h"
#include "ATen/ops/mean_meta_dispatch.h"
#include "ATen/ops/min_meta_dispatch.h"
#include "ATen/ops/minimum_meta_dispatch.h"
#include "ATen/ops/mm_meta_dispatch.h"
#include "ATen/ops/mse_loss_meta_dispatch.h"
#include "ATen/ops/mul_meta_dispatch.h"
#include "ATen/ops/ne_meta_dispatch.h"
#include "ATen/ops/neg_meta_dispatch.h"
#include "ATen/ops/nll_loss_backward_meta_dispatch.h"
#include "ATen/ops/nll_loss_forward_meta_dispatch.h"
#include "ATen/ops/pow_meta_dispatch.h"
#include "ATen/ops/reciprocal_meta_dispatch.h"
#include "ATen/ops/remainder_meta_dispatch.h"
#include "ATen/ops/rsqrt_meta_dispatch.h"
#include "ATen/ops/scatter_add_meta_dispatch.h"
#include "ATen/ops/sigmoid_meta_dispatch.h"
#include "ATen/ops/sigmoid_backward_meta_dispatch.h"
#include "ATen/ops/sign_meta_dispatch.h"
#include "ATen/ops/silu_meta_dispatch.h"
#include "ATen/ops/silu_backward_meta_dispatch.h"
#include "ATen/ops/sin_meta_dispatch.h"
#include "ATen/ops/softplus_meta_dispatch.h"
#include "ATen/ops/sort_meta_dispatch.h"
#include "ATen/ops/sqrt_meta_dispatch.h"
#include "ATen/ops/sub_meta_dispatch.h"
#include "ATen/ops/sum_meta_dispatch.h"
#include "ATen/ops/tan_meta_dispatch.h"
#include "ATen/ops/tanh_meta_dispatch.h"
#include "ATen/ops/tanh_backward_meta_dispatch.h"
#include "ATen/ops/threshold_backward_meta_dispatch.h"
#include "ATen/ops/topk_meta_dispatch.h"
#include "ATen/ops/tril_meta_dispatch.h"
#include "ATen/ops/triu_meta_dispatch.h"
#include "ATen/ops/trunc_meta_dispatch.h"

#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>

namespace halstream_torch {

namespace {

using at::Tensor;
using c10::Scalar;
using TwoTensors = std::tuple<Tensor, Tensor>;

using Unary = Tensor(const Tensor&);
using UnaryInPlace = Tensor&(Tensor&);
using Binary = Tensor(const Tensor&, const Tensor&);
using BinaryInPlace = Tensor&(Tensor&, const Tensor&);
using WithNumber = Tensor(const Tensor&, const Scalar&);
using WithNumberInPlace = Tensor&(Tensor&, const Scalar&);

// The type chooses one of the overloads.
template <class Function>
c10::KernelFunction kernel(Function* function) {
  return c10::KernelFunction::makeFromUnboxedRuntimeFunction(function);
}

const std::unordered_map<std::string, c10::KernelFunction>& meta_kernels() {
  static const auto* all = new std::unordered_map<std::string, c10::KernelFunction>{
      {"aten::neg", kernel<Unary>(at::meta::neg)},
      {"aten::neg_", kernel<UnaryInPlace>(at::meta::neg_)},
      {"aten::exp", kernel<Unary>(at::meta::exp)},
      {"aten::exp_", kernel<UnaryInPlace>(at::meta::exp_)},
      {"aten::exp2", kernel<Unary>(at::meta::exp2)},
      {"aten::exp2_", kernel<UnaryInPlace>(at::meta::exp2_)},
      {"aten::expm1", kernel<Unary>(at::meta::expm1)},
      {"aten::expm1_", kernel<UnaryInPlace>(at::meta::expm1_)},
      {"aten::log", kernel<Unary>(at::meta::log)},
      {"aten::log_", kernel<UnaryInPlace>(at::meta::log_)},
      {"aten::log1p", kernel<Unary>(at::meta::log1p)},
      {"aten::log1p_", kernel<UnaryInPlace>(at::meta::log1p_)},
      {"aten::log2", kernel<Unary>(at::meta::log2)},
      {"aten::log2_", kernel<UnaryInPlace>(at::meta::log2_)},
      {"aten::log10", kernel<Unary>(at::meta::log10)},
      {"aten::log10_", kernel<UnaryInPlace>(at::meta::log10_)},
      {"aten::sqrt", kernel<Unary>(at::meta::sqrt)},
      {"aten::sqrt_", kernel<UnaryInPlace>(at::meta::sqrt_)},
      {"aten::rsqrt", kernel<Unary>(at::meta::rsqrt)},
      {"aten::rsqrt_", kernel<UnaryInPlace>(at::meta::rsqrt_)},
      {"aten::reciprocal", kernel<Unary>(at::meta::reciprocal)},
      {"aten::reciprocal_", kernel<UnaryInPlace>(at::meta::reciprocal_)},
      {"aten::sin", kernel<Unary>(at::meta::sin)},
      {"aten::sin_", kernel<UnaryInPlace>(at::meta::sin_)},
      {"aten::cos", kernel<Unary>(at::meta::cos)},
      {"aten::cos_", kernel<UnaryInPlace>(at::meta::cos_)},
      {"aten::tan", kernel<Unary>(at::meta::tan)},
      {"aten::tan_", kernel<UnaryInPlace>(at::meta::tan_)},
      {"aten::tanh", kernel<Unary>(at::meta::tanh)},
      {"aten::tanh_", kernel<UnaryInPlace>(at::meta::tanh_)},
      {"aten::sigmoid", kernel<Unary>(at::meta::sigmoid)},
      {"aten::sigmoid_", kernel<UnaryInPlace>(at::meta::sigmoid_)},
      {"aten::erf", kernel<Unary>(at::meta::erf)},
      {"aten::erf_", kernel<UnaryInPlace>(at::meta::erf_)},
      {"aten::erfc", kernel<Unary>(at::meta::erfc)},
      {"aten::erfc_", kernel<UnaryInPlace>(at::meta::erfc_)},
      {"aten::floor", kernel<Unary>(at::meta::floor)},
      {"aten::floor_", kernel<UnaryInPlace>(at::meta::floor_)},
      {"aten::ceil", kernel<Unary>(at::meta::ceil)},
      {"aten::ceil_", kernel<UnaryInPlace>(at::meta::ceil_)},
      {"aten::trunc", kernel<Unary>(at::meta::trunc)},
      {"aten::trunc_", kernel<UnaryInPlace>(at::meta::trunc_)},
      {"aten::sign", kernel<Unary>(at::meta::sign)},
      {"aten::sign_", kernel<UnaryInPlace>(at::meta::sign_)},
      {"aten::silu", kernel<Unary>(at::meta::silu)},
      {"aten::silu_", kernel<UnaryInPlace>(at::meta::silu_)},
      {"aten::bitwise_not", kernel<Unary>(at::meta::bitwise_not)},
      {"aten::bitwise_not_", kernel<UnaryInPlace>(at::meta::bitwise_not_)},
      {"aten::mul.Tensor", kernel<Binary>(at::meta::mul)},
      {"aten::mul_.Tensor", kernel<BinaryInPlace>(at::meta::mul_)},
      {"aten::div.Tensor", kernel<Binary>(at::meta::div)},
      {"aten::div_.Tensor", kernel<BinaryInPlace>(at::meta::div_)},
      {"aten::maximum", kernel<Binary>(at::meta::maximum)},
      {"aten::minimum", kernel<Binary>(at::meta::minimum)},
      {"aten::bitwise_and.Tensor", kernel<Binary>(at::meta::bitwise_and)},
      {"aten::bitwise_and_.Tensor", kernel<BinaryInPlace>(at::meta::bitwise_and_)},
      {"aten::bitwise_or.Tensor", kernel<Binary>(at::meta::bitwise_or)},
      {"aten::bitwise_or_.Tensor", kernel<BinaryInPlace>(at::meta::bitwise_or_)},
      {"aten::bitwise_xor.Tensor", kernel<Binary>(at::meta::bitwise_xor)},
      {"aten::bitwise_xor_.Tensor", kernel<BinaryInPlace>(at::meta::bitwise_xor_)},
      {"aten::eq.Tensor", kernel<Binary>(at::meta::eq)},
      {"aten::eq_.Tensor", kernel<BinaryInPlace>(at::meta::eq_)},
      {"aten::ne.Tensor", kernel<Binary>(at::meta::ne)},
      {"aten::ne_.Tensor", kernel<BinaryInPlace>(at::meta::ne_)},
      {"aten::lt.Tensor", kernel<Binary>(at::meta::lt)},
      {"aten::lt_.Tensor", kernel<BinaryInPlace>(at::meta::lt_)},
      {"aten::le.Tensor", kernel<Binary>(at::meta::le)},
      {"aten::le_.Tensor", kernel<BinaryInPlace>(at::meta::le_)},
      {"aten::gt.Tensor", kernel<Binary>(at::meta::gt)},
      {"aten::gt_.Tensor", kernel<BinaryInPlace>(at::meta::gt_)},
      {"aten::ge.Tensor", kernel<Binary>(at::meta::ge)},
      {"aten::ge_.Tensor", kernel<BinaryInPlace>(at::meta::ge_)},
      {"aten::pow.Tensor_Tensor", kernel<Binary>(at::meta::pow)},
      {"aten::pow_.Tensor_Tensor", kernel<BinaryInPlace>(at::meta::pow_)},
      {"aten::remainder.Tensor", kernel<Binary>(at::meta::remainder)},
      {"aten::remainder_.Tensor", kernel<BinaryInPlace>(at::meta::remainder_)},
      {"aten::mm", kernel<Binary>(at::meta::mm)},
      {"aten::bmm", kernel<Binary>(at::meta::bmm)},
      {"aten::tanh_backward", kernel<Binary>(at::meta::tanh_backward)},
      {"aten::sigmoid_backward", kernel<Binary>(at::meta::sigmoid_backward)},
      {"aten::silu_backward", kernel<Binary>(at::meta::silu_backward)},
      {"aten::clamp_min.Tensor", kernel<Binary>(at::meta::clamp_min)},
      {"aten::clamp_min_.Tensor", kernel<BinaryInPlace>(at::meta::clamp_min_)},
      {"aten::eq.Scalar", kernel<WithNumber>(at::meta::eq)},
      {"aten::eq_.Scalar", kernel<WithNumberInPlace>(at::meta::eq_)},
      {"aten::ne.Scalar", kernel<WithNumber>(at::meta::ne)},
      {"aten::ne_.Scalar", kernel<WithNumberInPlace>(at::meta::ne_)},
      {"aten::lt.Scalar", kernel<WithNumber>(at::meta::lt)},
      {"aten::lt_.Scalar", kernel<WithNumberInPlace>(at::meta::lt_)},
      {"aten::le.Scalar", kernel<WithNumber>(at::meta::le)},
      {"aten::le_.Scalar", kernel<WithNumberInPlace>(at::meta::le_)},
      {"aten::gt.Scalar", kernel<WithNumber>(at::meta::gt)},
      {"aten::gt_.Scalar", kernel<WithNumberInPlace>(at::meta::gt_)},
      {"aten::ge.Scalar", kernel<WithNumber>(at::meta::ge)},
      {"aten::ge_.Scalar", kernel<WithNumberInPlace>(at::meta::ge_)},
      {"aten::pow.Tensor_Scalar", kernel<WithNumber>(at::meta::pow)},
      {"aten::pow_.Tensor_Scalar", kernel<WithNumberInPlace>(at::meta::pow_)},
      {"aten::leaky_relu", kernel<WithNumber>(at::meta::leaky_relu)},
      {"aten::leaky_relu_", kernel<WithNumberInPlace>(at::meta::leaky_relu_)},
      {"aten::clamp_min", kernel<WithNumber>(at::meta::clamp_min)},
      {"aten::clamp_min_", kernel<WithNumberInPlace>(at::meta::clamp_min_)},
      {"aten::add.Tensor", kernel<Tensor(const Tensor&, const Tensor&, const Scalar&)>(at::meta::add)},
      {"aten::add_.Tensor", kernel<Tensor&(Tensor&, const Tensor&, const Scalar&)>(at::meta::add_)},
      {"aten::sub.Tensor", kernel<Tensor(const Tensor&, const Tensor&, const Scalar&)>(at::meta::sub)},
      {"aten::sub_.Tensor", kernel<Tensor&(Tensor&, const Tensor&, const Scalar&)>(at::meta::sub_)},
      {"aten::addcmul",
       kernel<Tensor(const Tensor&, const Tensor&, const Tensor&, const Scalar&)>(at::meta::addcmul)},
      {"aten::addcmul_", kernel<Tensor&(Tensor&, const Tensor&, const Tensor&, const Scalar&)>(at::meta::addcmul_)},
      {"aten::addcdiv",
       kernel<Tensor(const Tensor&, const Tensor&, const Tensor&, const Scalar&)>(at::meta::addcdiv)},
      {"aten::addcdiv_", kernel<Tensor&(Tensor&, const Tensor&, const Tensor&, const Scalar&)>(at::meta::addcdiv_)},
      {"aten::addmm",
       kernel<Tensor(const Tensor&, const Tensor&, const Tensor&, const Scalar&, const Scalar&)>(at::meta::addmm)},
      {"aten::addmm_",
       kernel<Tensor&(Tensor&, const Tensor&, const Tensor&, const Scalar&, const Scalar&)>(at::meta::addmm_)},
      {"aten::baddbmm",
       kernel<Tensor(const Tensor&, const Tensor&, const Tensor&, const Scalar&, const Scalar&)>(at::meta::baddbmm)},
      {"aten::baddbmm_",
       kernel<Tensor&(Tensor&, const Tensor&, const Tensor&, const Scalar&, const Scalar&)>(at::meta::baddbmm_)},
      {"aten::lerp.Scalar", kernel<Tensor(const Tensor&, const Tensor&, const Scalar&)>(at::meta::lerp)},
      {"aten::lerp_.Scalar", kernel<Tensor&(Tensor&, const Tensor&, const Scalar&)>(at::meta::lerp_)},
      {"aten::clamp",
       kernel<Tensor(const Tensor&, const std::optional<Scalar>&, const std::optional<Scalar>&)>(at::meta::clamp)},
      {"aten::clamp_",
       kernel<Tensor&(Tensor&, const std::optional<Scalar>&, const std::optional<Scalar>&)>(at::meta::clamp_)},
      {"aten::div.Tensor_mode",
       kernel<Tensor(const Tensor&, const Tensor&, std::optional<std::string_view>)>(at::meta::div)},
      {"aten::div_.Tensor_mode",
       kernel<Tensor&(Tensor&, const Tensor&, std::optional<std::string_view>)>(at::meta::div_)},
      {"aten::gelu", kernel<Tensor(const Tensor&, std::string_view)>(at::meta::gelu)},
      {"aten::gelu_", kernel<Tensor&(Tensor&, std::string_view)>(at::meta::gelu_)},
      {"aten::gelu_backward",
       kernel<Tensor(const Tensor&, const Tensor&, std::string_view)>(at::meta::gelu_backward)},
      {"aten::threshold_backward",
       kernel<Tensor(const Tensor&, const Tensor&, const Scalar&)>(at::meta::threshold_backward)},
      {"aten::elu", kernel<Tensor(const Tensor&, const Scalar&, const Scalar&, const Scalar&)>(at::meta::elu)},
      {"aten::elu_", kernel<Tensor&(Tensor&, const Scalar&, const Scalar&, const Scalar&)>(at::meta::elu_)},
      {"aten::softplus", kernel<Tensor(const Tensor&, const Scalar&, const Scalar&)>(at::meta::softplus)},
      {"aten::sum.dim_IntList",
       kernel<Tensor(const Tensor&, at::OptionalIntArrayRef, bool, std::optional<at::ScalarType>)>(at::meta::sum)},
      {"aten::mean.dim",
       kernel<Tensor(const Tensor&, at::OptionalIntArrayRef, bool, std::optional<at::ScalarType>)>(at::meta::mean)},
      {"aten::amax", kernel<Tensor(const Tensor&, at::IntArrayRef, bool)>(at::meta::amax)},
      {"aten::amin", kernel<Tensor(const Tensor&, at::IntArrayRef, bool)>(at::meta::amin)},
      {"aten::argmax", kernel<Tensor(const Tensor&, std::optional<int64_t>, bool)>(at::meta::argmax)},
      {"aten::argmin", kernel<Tensor(const Tensor&, std::optional<int64_t>, bool)>(at::meta::argmin)},
      {"aten::max.dim", kernel<TwoTensors(const Tensor&, int64_t, bool)>(at::meta::max)},
      {"aten::min.dim", kernel<TwoTensors(const Tensor&, int64_t, bool)>(at::meta::min)},
      {"aten::cumsum", kernel<Tensor(const Tensor&, int64_t, std::optional<at::ScalarType>)>(at::meta::cumsum)},
      {"aten::cumsum_", kernel<Tensor&(Tensor&, int64_t, std::optional<at::ScalarType>)>(at::meta::cumsum_)},
      {"aten::linalg_vector_norm",
       kernel<Tensor(const Tensor&, const Scalar&, at::OptionalIntArrayRef, bool,
              std::optional<at::ScalarType>)>(at::meta::linalg_vector_norm)},
      {"aten::_softmax", kernel<Tensor(const Tensor&, int64_t, bool)>(at::meta::_softmax)},
      {"aten::_log_softmax", kernel<Tensor(const Tensor&, int64_t, bool)>(at::meta::_log_softmax)},
      {"aten::_softmax_backward_data",
       kernel<Tensor(const Tensor&, const Tensor&, int64_t, at::ScalarType)>(at::meta::_softmax_backward_data)},
      {"aten::_log_softmax_backward_data",
       kernel<Tensor(const Tensor&, const Tensor&, int64_t, at::ScalarType)>(at::meta::_log_softmax_backward_data)},
      {"aten::nll_loss_forward",
       kernel<TwoTensors(const Tensor&, const Tensor&, const std::optional<Tensor>&, int64_t,
              int64_t)>(at::meta::nll_loss_forward)},
      {"aten::nll_loss_backward",
       kernel<Tensor(const Tensor&, const Tensor&, const Tensor&, const std::optional<Tensor>&, int64_t,
              int64_t, const Tensor&)>(at::meta::nll_loss_backward)},
      {"aten::mse_loss", kernel<Tensor(const Tensor&, const Tensor&, int64_t)>(at::meta::mse_loss)},
      {"aten::cat", kernel<Tensor(const at::ITensorListRef&, int64_t)>(at::meta::cat)},
      {"aten::index.Tensor", kernel<Tensor(const Tensor&, const c10::List<std::optional<Tensor>>&)>(at::meta::index)},
      {"aten::gather", kernel<Tensor(const Tensor&, int64_t, const Tensor&, bool)>(at::meta::gather)},
      {"aten::scatter_add",
       kernel<Tensor(const Tensor&, int64_t, const Tensor&, const Tensor&)>(at::meta::scatter_add)},
      {"aten::scatter_add_", kernel<Tensor&(Tensor&, int64_t, const Tensor&, const Tensor&)>(at::meta::scatter_add_)},
      {"aten::index_add",
       kernel<Tensor(const Tensor&, int64_t, const Tensor&, const Tensor&, const Scalar&)>(at::meta::index_add)},
      {"aten::index_add_",
       kernel<Tensor&(Tensor&, int64_t, const Tensor&, const Tensor&, const Scalar&)>(at::meta::index_add_)},
      {"aten::tril", kernel<Tensor(const Tensor&, int64_t)>(at::meta::tril)},
      {"aten::tril_", kernel<Tensor&(Tensor&, int64_t)>(at::meta::tril_)},
      {"aten::triu", kernel<Tensor(const Tensor&, int64_t)>(at::meta::triu)},
      {"aten::triu_", kernel<Tensor&(Tensor&, int64_t)>(at::meta::triu_)},
      {"aten::topk", kernel<TwoTensors(const Tensor&, int64_t, int64_t, bool, bool)>(at::meta::topk)},
      {"aten::sort.stable", kernel<TwoTensors(const Tensor&, std::optional<bool>, int64_t, bool)>(at::meta::sort)},
      {"aten::avg_pool2d",
       kernel<Tensor(const Tensor&, at::IntArrayRef, at::IntArrayRef, at::IntArrayRef, bool, bool,
              std::optional<int64_t>)>(at::meta::avg_pool2d)},
      {"aten::avg_pool2d_backward",
       kernel<Tensor(const Tensor&, const Tensor&, at::IntArrayRef, at::IntArrayRef, at::IntArrayRef, bool,
              bool, std::optional<int64_t>)>(at::meta::avg_pool2d_backward)},
      {"aten::max_pool2d_with_indices",
       kernel<TwoTensors(const Tensor&, at::IntArrayRef, at::IntArrayRef, at::IntArrayRef, at::IntArrayRef,
              bool)>(at::meta::max_pool2d_with_indices)},
      {"aten::max_pool2d_with_indices_backward",
       kernel<Tensor(const Tensor&, const Tensor&, at::IntArrayRef, at::IntArrayRef, at::IntArrayRef,
              at::IntArrayRef, bool, const Tensor&)>(at::meta::max_pool2d_with_indices_backward)},
  };
  return *all;
}

}  // namespace

const c10::KernelFunction* shapes_of(const c10::OperatorHandle& op) {
  const auto& schema = op.schema();
  const auto& overload = schema.overload_name();
  auto found = meta_kernels().find(overload.empty() ? schema.name() : schema.name() + "." + overload);
  return found != meta_kernels().end() ? &found->second : nullptr;
}

}  // namespace halstream_torch
