#include "operators.h"

#include <ATen/core/enum_tag.h>

#include <unordered_map>

namespace halstream_torch {

namespace {

bool is_tensor_type(const c10::TypePtr& type) {
  return type->kind() == c10::TypeKind::TensorType ||
      (type->kind() == c10::TypeKind::OptionalType &&
       type->expectRef<c10::OptionalType>().getElementType()->kind() == c10::TypeKind::TensorType);
}

bool is_tensor_list_type(const c10::TypePtr& type) {
  if (type->kind() == c10::TypeKind::OptionalType) {
    return is_tensor_list_type(type->expectRef<c10::OptionalType>().getElementType());
  }
  return type->kind() == c10::TypeKind::ListType && is_tensor_type(type->expectRef<c10::ListType>().getElementType());
}

c10::TypeKind inner_kind(c10::TypePtr type) {
  if (type->kind() == c10::TypeKind::OptionalType) type = type->expectRef<c10::OptionalType>().getElementType();
  return type->kind();
}

ArgumentFacts::Kind kind_of(const c10::Argument& argument) {
  // real_type, because a Device, for example, appears as a plain type otherwise.
  const auto& type = argument.real_type();
  if (is_tensor_type(type)) return ArgumentFacts::Kind::tensor;
  if (is_tensor_list_type(type)) return ArgumentFacts::Kind::tensors;
  if (type->kind() == c10::TypeKind::ListType &&
      type->expectRef<c10::ListType>().getElementType()->kind() == c10::TypeKind::NumberType) {
    return ArgumentFacts::Kind::number;
  }
  switch (inner_kind(type)) {
    case c10::TypeKind::GeneratorType:
      return ArgumentFacts::Kind::generator;
    case c10::TypeKind::DeviceObjType:
      return ArgumentFacts::Kind::device;
    case c10::TypeKind::NumberType:
    case c10::TypeKind::FloatType:
      return ArgumentFacts::Kind::number;
    default:
      return ArgumentFacts::Kind::other;
  }
}

// Their `out=` kernels use the output for unreduced values first, which needs more room than the result has.
bool uses_output_as_scratch(const std::string& name) {
  return name == "aten::mse_loss" || name == "aten::binary_cross_entropy" || name == "aten::smooth_l1_loss" || name == "aten::huber_loss";
}

// The overload `name.*out` that takes the same arguments and then one tensor for each result.
std::optional<c10::OperatorHandle> find_out_variant(const c10::OperatorHandle& handle) {
  const auto& schema = handle.schema();
  auto& dispatcher = c10::Dispatcher::singleton();
  static const auto* by_name = [&dispatcher] {
    auto* all = new std::unordered_map<std::string, std::vector<c10::OperatorName>>();
    for (auto& name : dispatcher.getAllOpNames()) (*all)[name.name].push_back(name);
    return all;
  }();
  auto overloads = by_name->find(schema.name());
  if (overloads == by_name->end()) return std::nullopt;
  for (const auto& name : overloads->second) {
    auto candidate = dispatcher.findSchema(name);
    if (!candidate || !candidate->hasKernelForDispatchKey(c10::DispatchKey::CPU)) continue;
    const auto& other = candidate->schema();
    if (other.arguments().size() != schema.arguments().size() + schema.returns().size()) continue;
    bool same = true;
    for (size_t i = 0; same && i < other.arguments().size(); i++) {
      const auto& argument = other.arguments()[i];
      if (i < schema.arguments().size()) {
        same = argument.name() == schema.arguments()[i].name() && *argument.type() == *schema.arguments()[i].type();
      } else {
        same = argument.is_out() && argument.type()->kind() == c10::TypeKind::TensorType;
      }
    }
    if (same) return candidate;
  }
  return std::nullopt;
}

bool makes_other_layout_of(const std::string& name) {
  return name == "aten::_nested_from_padded" || name.rfind("aten::quantize_per_", 0) == 0 ||
      name.rfind("aten::_make_per_", 0) == 0;
}

Indexing indexing_of(const Operator& op) {
  static const std::unordered_map<std::string, Indexing> reading{
      {"aten::index", Indexing::lists},         {"aten::index_select", Indexing::slices},
      {"aten::gather", Indexing::elements},     {"aten::take", Indexing::flat},
      {"aten::embedding", Indexing::rows},      {"aten::_embedding_bag", Indexing::rows},
      {"aten::_embedding_bag_forward_only", Indexing::rows},
  };
  static const std::unordered_map<std::string, Indexing> in_place{
      {"aten::_index_put_impl_", Indexing::lists}, {"aten::index_put_", Indexing::lists},
      {"aten::index_copy_", Indexing::slices},     {"aten::index_add_", Indexing::slices},
      {"aten::index_fill_", Indexing::slices},     {"aten::index_reduce_", Indexing::slices},
      {"aten::scatter_", Indexing::elements},      {"aten::scatter_add_", Indexing::elements},
      {"aten::scatter_reduce_", Indexing::elements}, {"aten::put_", Indexing::flat},
      {"aten::embedding_renorm_", Indexing::rows},   {"aten::masked_fill_", Indexing::mask},
      {"aten::masked_scatter_", Indexing::mask},
  };
  const auto& names = !op.arguments.empty() && op.arguments[0].writes ? in_place : reading;
  auto found = names.find(op.name);
  return found == names.end() ? Indexing::none : found->second;
}

}  // namespace

Operator::Operator(const c10::OperatorHandle& of) : handle(of) {
  const auto& schema = handle.schema();
  name = schema.name();
  for (const auto& argument : schema.arguments()) {
    const auto* alias = argument.alias_info();
    ArgumentFacts facts{kind_of(argument), alias != nullptr && alias->isWrite(), argument.is_out()};
    if (facts.kind == ArgumentFacts::Kind::generator) generator = static_cast<int>(arguments.size());
    writes = writes || facts.writes;
    has_out = has_out || facts.out;
    arguments.push_back(facts);
  }
  bool only_tensors = true;
  for (const auto& result : schema.returns()) {
    ReturnFacts facts{ReturnFacts::Kind::other, -1};
    if (is_tensor_type(result.type())) facts.kind = ReturnFacts::Kind::tensor;
    if (is_tensor_list_type(result.type())) facts.kind = ReturnFacts::Kind::tensors;
    only_tensors = only_tensors && facts.kind != ReturnFacts::Kind::other;
    const auto* alias = result.alias_info();
    if (alias != nullptr && alias->isWrite()) {
      for (size_t i = 0; i < arguments.size() && facts.argument < 0; i++) {
        const auto* other = schema.arguments()[i].alias_info();
        if (other != nullptr && *other == *alias) facts.argument = static_cast<int>(i);
      }
    }
    makes = makes || facts.argument < 0;
    returns.push_back(facts);
  }
  pointwise = handle.hasTag(at::Tag::pointwise) || name.rfind("aten::_foreach_", 0) == 0 ||
      name.rfind("aten::_fused_", 0) == 0;
  random = generator >= 0 || handle.hasTag(at::Tag::nondeterministic_seeded);
  needs_values = !only_tensors || handle.hasTag(at::Tag::dynamic_output_shape) ||
      handle.hasTag(at::Tag::data_dependent_output) || name == "aten::_coalesce";
  makes_other_layout = makes_other_layout_of(name);
  indexes = name.find("index") != std::string::npos;
  indexing = indexing_of(*this);
  takes_one_value = name == "aten::_assert_async";
  lengths_on_host = name == "aten::_pack_padded_sequence" || name == "aten::_nested_from_padded";
  needs_values = needs_values || name == "aten::_pack_padded_sequence";
  shapes_from_cpu = name == "aten::_embedding_bag" || name == "aten::_embedding_bag_forward_only" ||
      name == "aten::multilabel_margin_loss_forward";
  bool shape_known = !needs_values || name == "aten::index";  // without masks
  if (makes && !writes && shape_known && !uses_output_as_scratch(name)) out_variant = find_out_variant(handle);
}

bool makes_view(const c10::FunctionSchema& schema) {
  for (const auto& result : schema.returns()) {
    if (result.alias_info() != nullptr && !result.alias_info()->isWrite()) return true;
  }
  return false;
}

}  // namespace halstream_torch
